"""Validates JSON lines with Python's jsonschema, which shares no code with the program.

Each line is a list of two: the path of a schema below the directory of schemas, and an object.
Usage: validate.py SCHEMAS < lines. Prints the number of lines; the first that fails is told, with exit code 1.
"""

import json
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")
import jsonschema

root = pathlib.Path(sys.argv[1])
store = {}
for path in root.rglob("*.schema.json"):
    schema = json.loads(path.read_text())
    store[schema["$id"]] = schema

validators = {}


def validator(name):
    if name not in validators:
        schema = json.loads((root / name).read_text())
        resolver = jsonschema.RefResolver(schema["$id"], schema, store=store)
        validators[name] = jsonschema.Draft7Validator(
            schema, resolver=resolver, format_checker=jsonschema.FormatChecker()
        )
    return validators[name]


count = 0
for line in sys.stdin:
    name, value = json.loads(line)
    errors = list(validator(name).iter_errors(value))
    if errors:
        print(f"{name}: {errors[0].message}\n{json.dumps(value)}", file=sys.stderr)
        sys.exit(1)
    count += 1
print(count)
