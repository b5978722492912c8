"""What the program answers. Each has the most used fields by name and the whole JSON as ``raw``; its shape is
``docs/schema/backout.json``."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Reply:
    """Any answer."""

    raw: dict[str, Any] = field(repr=False)

    @property
    def recovered(self) -> list[dict[str, Any]]:
        """What dead processes had left, and was settled on the way."""
        return list(self.raw.get("recovered", []))


@dataclass(frozen=True)
class Recorded(Reply):
    """A write that happened."""

    id: str
    summary: str
    status: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ran(Recorded):
    """A command that ran, and what it wrote to its own streams."""

    exit_code: int | None = None
    signal: int | None = None
    stdout: str = field(default="", repr=False)
    stderr: str = field(default="", repr=False)

    @property
    def ok(self) -> bool:
        """Whether it ended with 0."""
        return self.exit_code == 0

    @property
    def changed(self) -> bool:
        """Whether it changed any file."""
        end = self.raw.get("end", {})
        return any(end.get(kind, 0) for kind in ("created", "changed", "deleted"))


@dataclass(frozen=True)
class Rows(Reply):
    """What statements read. ``results`` has one entry for each of them."""

    results: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Operation(Reply):
    """An operation as the journal has it."""

    id: str
    verb: str
    summary: str
    status: str
    agent: str | None = None
    task: str | None = None

    @property
    def in_effect(self) -> bool:
        """Whether any of it is still in the world."""
        return self.status in ("applied", "committed", "interrupted", "in-doubt", "failed")


@dataclass(frozen=True)
class Outcome:
    """What became of one target."""

    target: str
    outcome: str
    why: str | None = None


@dataclass(frozen=True)
class Undone(Reply):
    """What an undo, a redo or a rollback did, target by target, read back from the world."""

    act: str | None
    outcomes: tuple[Outcome, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The operations that were taken back or brought again."""
        return tuple(step["id"] for step in self.raw.get("steps", []))


@dataclass(frozen=True)
class Plan(Reply):
    """What an undo would do. Nothing was touched."""

    is_executable: bool
    targets: tuple[Outcome, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The operations that would go, in that order."""
        return tuple(step["id"] for step in self.raw.get("steps", []))


@dataclass(frozen=True)
class Checkpoint(Reply):
    """A mark to return to, with what the agent wanted to find again."""

    name: str
    state: Any = None


@dataclass(frozen=True)
class Resumed(Reply):
    """Where an agent goes on, and what was taken back."""

    next_step: int | None
    state: Any
    checkpoint: str
    reverted: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()

    @property
    def point(self) -> dict[str, Any]:
        """What the checkpoint says of the agent: decisions, summary, directory, environment."""
        return dict(self.raw["checkpoint"].get("resume") or {})


def resumed(raw: dict[str, Any]) -> Resumed:
    """Reads where an agent goes on."""
    mark = raw["checkpoint"]
    gone = tuple(entry["id"] for entry in raw["reverted"])
    stays = tuple(entry["id"] for entry in raw["stays"])
    return Resumed(raw, raw.get("next_step"), mark.get("state"), mark["name"], gone, stays)


def recorded(raw: dict[str, Any]) -> Recorded:
    """Reads a write."""
    return Recorded(raw, raw["id"], raw["summary"], raw["status"], tuple(raw.get("notes", ())))


def ran(raw: dict[str, Any], stdout: str, stderr: str) -> Ran:
    """Reads a command."""
    end = raw.get("end", {})
    return Ran(
        raw,
        raw["id"],
        raw["summary"],
        raw["status"],
        tuple(raw.get("notes", ())),
        exit_code=end.get("exit_code"),
        signal=end.get("signal"),
        stdout=stdout,
        stderr=stderr,
    )


def rows_or_recorded(raw: dict[str, Any]) -> Rows | Recorded:
    """Reads what SQL gave: rows if it only read, else the operation."""
    if raw.get("reply") == "rows":
        return Rows(raw, tuple(raw.get("results", ())))
    return recorded(raw)


def operation(raw: dict[str, Any]) -> Operation:
    """Reads one entry of the journal."""
    fields = (raw["id"], raw["verb"], raw["summary"], raw["status"])
    return Operation(raw, *fields, agent=raw.get("agent"), task=raw.get("task"))


def shown(raw: dict[str, Any]) -> Operation:
    """Reads one operation with all that is known of it."""
    return operation(raw.get("operation", raw))


def operations(raw: dict[str, Any]) -> list[Operation]:
    """Reads a part of the journal."""
    return [operation(entry) for entry in raw["operations"]]


def undone(raw: dict[str, Any]) -> Undone:
    """Reads what was taken back."""
    found = tuple(
        Outcome(named(it["target"]), it["outcome"], it.get("why"))
        for step in raw.get("steps", [])
        for it in step.get("outcomes", [])
    )
    return Undone(raw, raw.get("act"), found)


def plan(raw: dict[str, Any]) -> Plan:
    """Reads what would be taken back."""
    found = tuple(
        Outcome(named(it["target"]), it["state"], it.get("why"))
        for step in raw.get("steps", [])
        for it in step.get("targets", [])
    )
    return Plan(raw, bool(raw.get("is_executable")), found)


def checkpoint(raw: dict[str, Any]) -> Checkpoint:
    """Reads a mark."""
    return Checkpoint(raw, raw["name"], raw.get("state"))


def checkpoints(raw: dict[str, Any]) -> list[Checkpoint]:
    """Reads marks, newest first."""
    return [checkpoint(entry) for entry in raw["checkpoints"]]


def named(target: dict[str, Any]) -> str:
    """Names a target as people do: a path, with its parts behind a colon; elsewhere the space first."""
    parts = ".".join(str(part) for part in target.get("parts", []))
    if target.get("kind") == "path":
        path = as_path(target.get("path", ""))
        return f"{path}:{parts}" if parts else path
    names = "/".join(str(name) for name in target.get("names", []))
    place = f"{target.get('space', target.get('kind', ''))}:{names}"
    return f"{place}:{parts}" if parts else place


def as_path(path: str | dict[str, str]) -> str:
    """Reads a path, which comes as hexadecimal digits where it is no UTF-8."""
    return path if isinstance(path, str) else os.fsdecode(bytes.fromhex(path["hex"]))
