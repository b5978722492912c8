"""Functions of your own that can be taken back: recorded before they run, with the function that answers them."""

from __future__ import annotations

import functools
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from ._errors import BackoutError, NothingHappened
from ._program import Call, Printed, answer
from ._replies import Recorded, Reply, recorded

if TYPE_CHECKING:
    from ._client import Backout

P = ParamSpec("P")
T = TypeVar("T")

#: What runs a function by its place, in any later process. It needs nothing of this package.
HANDLER = Path(__file__).with_name("_handler.py")


@dataclass(frozen=True)
class Decorator:
    """What makes functions reversible: the client that records them, and what answers them."""

    client: Backout
    undo: Callable[..., Any]
    look: Callable[..., Any] | None
    answer_of: Callable[[Any], Any]
    timeout: int

    def __post_init__(self) -> None:
        for each in (self.undo, *([self.look] if self.look else [])):
            place_of(each)

    def __call__(self, function: Callable[P, T]) -> Reversible[P, T]:
        return Reversible(self, function)


class Reversible(Generic[P, T]):
    """A function whose effect can be taken back. Call it like the function itself.

    ``operation`` names what the last call did, for ``undo``.
    """

    def __init__(self, how: Decorator, function: Callable[P, T]) -> None:
        place_of(function)
        functools.update_wrapper(self, function)
        self.operation: str | None = None
        self._how = how
        self._function = function

    def on(self, client: Backout) -> Reversible[P, T]:
        """The same function, recorded by another client: that of a task, say."""
        return Reversible(replace(self._how, client=client), self._function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        # Who could not be called must not be in doubt.
        inspect.signature(self._function).bind(*args, **kwargs)
        told = {"args": list(args), "kwargs": kwargs}
        about = json.dumps(told)
        if json.loads(about) != told:
            raise TypeError("an argument does not come back from JSON as it was, so undo would be called with another one")
        with subprocess.Popen(
            self._how.client._argv(Call(self._words(about, args, kwargs), Reply)),
            cwd=self._how.client.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            assert child.stdout is not None
            # The way back is kept as soon as there is a line; if there is none, it says why behind this.
            is_armed = b'"armed"' in child.stdout.readline()
            if not is_armed:
                self._ended(child, None)
                raise AssertionError("a call that is not armed fails")
            try:
                result = self._function(*args, **kwargs)
                said = json.dumps({"answer": json.dumps(self._how.answer_of(result))})
            except NothingHappened as nothing:
                self._refused(child, json.dumps({"nothing": str(nothing) or "the function says so"}), nothing)
                raise
            except BaseException as error:
                # Whether it happened, and what is left, is found out there.
                self._refused(child, None, error)
                raise
            self.operation = self._ended(child, said).id
        return result

    def _words(self, about: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        said = [repr(value) for value in args] + [f"{name}={value!r}" for name, value in kwargs.items()]
        words = ["act", "--ask", "--name", f"{self._function.__qualname__}({', '.join(said)})"]
        words += ["--about", about, "--timeout", str(self._how.timeout)]
        words += ["--undo", program("undo", self._how.undo), "--again", program("act", self._function)]
        return [*words, *(["--look", program("look", self._how.look)] if self._how.look else [])]

    def _refused(self, child: subprocess.Popen[bytes], said: str | None, error: BaseException) -> None:
        try:
            self._ended(child, said)
        except BackoutError as failed:
            if said is None and hasattr(error, "add_note"):
                error.add_note(failed.text())

    def _ended(self, child: subprocess.Popen[bytes], said: str | None) -> Recorded:
        stdout, stderr = child.communicate(said.encode() + b"\n" if said is not None else None)
        read = Call([], lambda raw: recorded(raw["operation"]))
        return answer(read, Printed(child.returncode, stdout, stderr))


def place_of(function: Callable[..., Any]) -> dict[str, str]:
    """Says where a later process finds a function: its module's name and file, and its name in there."""
    name = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if not name or "<" in name or "." in name or module is None or file is None:
        raise TypeError(f"{function!r} is no function of a module: no later process could find it")
    spec = getattr(module, "__spec__", None)
    known = spec.name if spec is not None else module.__name__
    return {"module": known, "file": str(Path(file).resolve()), "name": name}


def program(what: str, function: Callable[..., Any]) -> str:
    """Gives the words of a program that calls a function."""
    return json.dumps([sys.executable, str(HANDLER), what, json.dumps(place_of(function))])
