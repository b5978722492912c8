"""Calls a function by its place: ``python _handler.py undo | look | act PLACE``, with what it is told on standard input.

It is run by ``backout undo`` and its like, in a process that knows nothing of the one that recorded the call.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

#: How ``look`` ends if the effect is not there, and if nobody can tell.
NOT_THERE, UNKNOWN = 1, 2


def found(place: dict[str, str]) -> Any:
    """Imports the module and finds the function in it. A script is loaded from its file, and its ``__main__`` part does not run."""
    file, module = Path(place["file"]), place["module"]
    parts = module.split(".")
    root = file.parents[len(parts) if file.name == "__init__.py" else len(parts) - 1]
    sys.path.insert(0, str(root))
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    try:
        if module == "__main__":
            raise ModuleNotFoundError(name=module)
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        spec = importlib.util.spec_from_file_location(f"_backout_{file.stem}", file)
        if spec is None or spec.loader is None:
            raise
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = loaded
        spec.loader.exec_module(loaded)
    function = functools.reduce(getattr, place["name"].split("."), loaded)
    return getattr(function, "__wrapped__", function) if type(function).__name__ == "Reversible" else function


def main(what: str, place: str) -> int:
    """Calls it, and prints what it gave. What the function prints itself is no answer."""
    told = json.load(sys.stdin)
    args, kwargs = told["about"]["args"], told["about"]["kwargs"]
    with contextlib.redirect_stdout(sys.stderr):
        try:
            function = found(json.loads(place))
            given = function(json.loads(told["answer"]), *args, **kwargs) if what == "undo" else function(*args, **kwargs)
        except Exception as error:
            if what == "look":
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
                return UNKNOWN
            raise
    if what == "look" and given is None:
        return NOT_THERE
    if what != "undo":
        print(json.dumps(given))
    return 0


if __name__ == "__main__":
    # Its own directory holds modules of this package, which are none of the function's.
    sys.path.pop(0)
    sys.exit(main(*sys.argv[1:]))
