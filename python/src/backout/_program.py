"""Finds the ``backout`` program and reads what it prints."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ._errors import BackoutError, ProgramMissing, error_of
from ._replies import Ran, Reply, ran

T = TypeVar("T")

PROGRAM_VARIABLE = "BACKOUT_PROGRAM"
"""Names the program, for whoever has it elsewhere."""


def find_program() -> str:
    """Finds the program: the one named by ``BACKOUT_PROGRAM``, the one of this package, or the first on the path."""
    named = os.environ.get(PROGRAM_VARIABLE)
    if named:
        return named
    ours = Path(sysconfig.get_path("scripts")) / "backout"
    if ours.is_file():
        return str(ours)
    found = shutil.which("backout")
    if found:
        return found
    raise ProgramMissing(
        f"there is no `backout` in {ours.parent} and none on the path; "
        f"install the package's wheel, or name the program in {PROGRAM_VARIABLE}"
    )


def stop_signal() -> signal.Signals:
    """The signal that stops the program: that of Ctrl-C, unless this process, and so all that it starts, does not hear it."""
    is_deaf = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return signal.SIGTERM if is_deaf else signal.SIGINT


@dataclass(frozen=True)
class Call(Generic[T]):
    """One call of the program: its words, what it reads, and how its answer is read."""

    words: Sequence[str]
    read: Callable[[dict[str, Any]], T]
    stdin: bytes | None = None
    is_run: bool = False
    """Whether standard output is a command's own and the answer the last line of standard error."""
    check: bool = False
    """Whether a command that does not succeed is an exception."""


@dataclass(frozen=True)
class Printed:
    """What a process left."""

    exit_code: int
    stdout: bytes
    stderr: bytes


def answer(call: Call[T], printed: Printed) -> T:
    """Reads the answer of an ordinary call."""
    reply = last_object(printed.stdout)
    if printed.exit_code == 0 and reply is not None:
        return call.read(reply)
    error = last_object(printed.stderr)
    # A preview that would not be carried out is an answer, and so is a command's own failure.
    if error is None and reply is not None:
        return call.read(reply)
    raise failure(error, printed, reply)


def answer_of_run(printed: Printed) -> Ran:
    """Reads the answer of ``run``: the command's streams, and the reply behind them."""
    head, reply = split_last_object(printed.stderr)
    if reply is None or reply.get("reply") != "ran":
        raise failure(reply, printed, None)
    return ran(reply, text(printed.stdout), text(head))


def failure(error: dict[str, Any] | None, printed: Printed, reply: dict[str, Any] | None) -> BackoutError:
    """Makes the exception for a call that failed."""
    said = error if error is not None and "code" in error else {"what": text(printed.stderr).strip()}
    part = Reply(reply) if reply is not None else None
    return error_of(said, printed.exit_code, part)


def last_object(stream: bytes) -> dict[str, Any] | None:
    """Gives the JSON object on the last line of a stream."""
    return split_last_object(stream)[1]


def split_last_object(stream: bytes) -> tuple[bytes, dict[str, Any] | None]:
    """Takes the JSON object off the end of a stream."""
    body = stream.rstrip(b"\n")
    head, line = body.rpartition(b"\n")[::2]
    start = line.find(b'{"')
    while start >= 0:
        try:
            found = json.loads(line[start:])
        except ValueError:
            # A command's last line need not end with a newline: the object may come right behind it.
            start = line.find(b'{"', start + 1)
            continue
        if isinstance(found, dict):
            before = line[:start]
            return (head + b"\n" if head or stream.startswith(b"\n") else b"") + before, found
        break
    return stream, None


def text(stream: bytes) -> str:
    """Reads bytes as text, whatever they are."""
    return stream.decode("utf-8", errors="replace")
