"""Reads texts with the parsers of Python, bash and rustfmt, and says of each what is wrong with it.

Input: a JSON list of [format, text]. Output: a JSON list with null for a good text, else the complaint.
"""

import ast
import configparser
import json
import subprocess
import sys
import tomllib
import warnings
import xml.parsers.expat

import yaml

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
warnings.simplefilter("ignore")


def no_twins(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("a key stands twice")
    return dict(pairs)


def no_constant(name):
    raise ValueError(name + " is no value")


def judge_json(text):
    json.loads(text, object_pairs_hook=no_twins, parse_constant=no_constant)


def judge_yaml(text):
    def look(node, seen):
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            names = set()
            for name, value in node.value:
                key = (name.tag, name.value) if isinstance(name, yaml.ScalarNode) else None
                if key in names and key != ("tag:yaml.org,2002:merge", "<<"):
                    raise ValueError("a key stands twice")
                names.add(key) if key else None
                look(name, seen)
                look(value, seen)
        elif isinstance(node, yaml.SequenceNode):
            for value in node.value:
                look(value, seen)

    try:
        for document in yaml.compose_all(text, Loader):
            look(document, set())
    except yaml.composer.ComposerError as error:
        # YAML lets an anchor be defined again. This reader does not.
        if "duplicate anchor" not in str(error):
            raise


def judge_toml(text):
    tomllib.loads(text)


def judge_xml(text):
    xml.parsers.expat.ParserCreate("utf-8").Parse(text.encode(), True)


def judge_ini(text):
    # Keys may stand before the first section.
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string("[top]\n" + text)
    except AttributeError:
        # An indented line behind a key without a value: configparser falls over it, and has no opinion.
        pass


def judge_shell(text):
    bash = subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, timeout=20)
    if bash.returncode or bash.stderr:
        raise ValueError(bash.stderr.decode(errors="replace").strip()[:200])


def judge_rust(text):
    command = ["rustfmt", "--edition", "2021", "--emit", "stdout"]
    rustfmt = subprocess.run(command, input=text.encode(), capture_output=True, timeout=20)
    if rustfmt.returncode:
        raise ValueError(rustfmt.stderr.decode(errors="replace").strip()[:200])


def judge_python(text):
    try:
        ast.parse(text)
    except SyntaxError as error:
        # What a compiler says when the grammar is content.
        if "follows keyword argument" not in str(error):
            raise


def judged(format, text):
    try:
        globals()["judge_" + format](text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, yaml.YAMLError, xml.parsers.expat.ExpatError, configparser.Error) as error:
        return str(error).replace("\n", " ")[:200] or type(error).__name__
    return None


sys.setrecursionlimit(5000)
json.dump([judged(format, text) for format, text in json.load(sys.stdin)], sys.stdout)
