"""The calls, each as the words of a command line. ``Backout`` and ``AsyncBackout`` carry out the same ones."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from . import _replies as replies
from ._program import Call
from ._replies import Checkpoint, Operation, Plan, Ran, Recorded, Reply, Resumed, Rows, Undone

Name = str | os.PathLike[str]
OnConflict = Literal["refuse", "merge", "force"]


def write(
    path: Name,
    content: str | bytes,
    *,
    create: bool = False,
    existing: bool = False,
    append: bool = False,
    parents: bool = False,
    mode: int | None = None,
    once: str | None = None,
) -> Call[Recorded]:
    """Writes a file's whole content, or adds to its end."""
    words = ["write", *flags(create=create, existing=existing, append=append, parents=parents)]
    if mode is not None:
        words += ["--mode", format(mode, "04o")]
    stdin = content.encode() if isinstance(content, str) else content
    return Call([*key(once), *words, "--", os.fspath(path)], replies.recorded, stdin)


def edit(
    path: Name, search: str, replace: str, *, all: bool = False, nth: int | None = None, once: str | None = None
) -> Call[Recorded]:
    """Replaces a text that is in a file exactly once, or every place, or the n-th."""
    words = ["edit", f"--search={search}", f"--replace={replace}", *flags(all=all)]
    if nth is not None:
        words += ["--nth", str(nth)]
    return Call([*key(once), *words, "--", os.fspath(path)], replies.recorded)


def patch(patch: str | bytes, *, base: Name | None = None, once: str | None = None) -> Call[Recorded]:
    """Applies a unified patch: all of it, or nothing."""
    words = ["edit", "--patch", "-", *([f"--base={os.fspath(base)}"] if base is not None else [])]
    return Call([*key(once), *words], replies.recorded, patch.encode() if isinstance(patch, str) else patch)


def remove(*paths: Name, recursive: bool = False, missing_ok: bool = False, once: str | None = None) -> Call[Recorded]:
    """Removes files, links and, with ``recursive``, directories: together or not at all."""
    words = ["rm", *flags(recursive=recursive, force=missing_ok), "--", *names(paths)]
    return Call([*key(once), *words], replies.recorded)


def move(source: Name, to: Name, *, replace: bool = False, once: str | None = None) -> Call[Recorded]:
    """Moves or renames a file or a directory."""
    words = ["mv", *flags(replace=replace), "--", os.fspath(source), os.fspath(to)]
    return Call([*key(once), *words], replies.recorded)


def copy(
    source: Name, to: Name, *, recursive: bool = False, replace: bool = False, once: str | None = None
) -> Call[Recorded]:
    """Copies a file or a directory."""
    words = ["cp", *flags(recursive=recursive, replace=replace), "--", os.fspath(source), os.fspath(to)]
    return Call([*key(once), *words], replies.recorded)


def mkdir(path: Name, *, parents: bool = False, once: str | None = None) -> Call[Recorded]:
    """Makes a directory."""
    return Call([*key(once), "mkdir", *flags(parents=parents), "--", os.fspath(path)], replies.recorded)


def batch(changes: Iterable[Mapping[str, Any]], *, once: str | None = None) -> Call[Recorded]:
    """Makes several changes as one operation: all or nothing. ``backout batch --help`` has their form."""
    stdin = json.dumps({"changes": list(changes)}).encode()
    return Call([*key(once), "batch"], replies.recorded, stdin)


def set(path: Name, name: str, value: Any, *, once: str | None = None) -> Call[Recorded]:
    """Gives one key of a config file a value, which may be anything that JSON can say."""
    words = ["set", "--value-json", "--", os.fspath(path), name, json.dumps(value)]
    return Call([*key(once), *words], replies.recorded)


def unset(path: Name, name: str, *, once: str | None = None) -> Call[Recorded]:
    """Takes one key out of a config file."""
    return Call([*key(once), "unset", "--", os.fspath(path), name], replies.recorded)


def merge(path: Name, changes: Mapping[str, Any], *, once: str | None = None) -> Call[Recorded]:
    """Changes several keys of a config file; ``None`` takes a key out."""
    stdin = json.dumps(changes).encode()
    return Call([*key(once), "merge", "--", os.fspath(path), "-"], replies.recorded, stdin)


def sql(db: Name, statements: str, *, create: bool = False) -> Call[Rows | Recorded]:
    """Runs SQL in one database transaction: rows if it only reads, else the operation."""
    words = ["sql", f"--db={os.fspath(db)}", *flags(create=create)]
    return Call(words, replies.rows_or_recorded, statements.encode())


def http(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    data: str | bytes | None = None,
    json_body: Any = None,
    timeout: float | None = None,
    irreversible: bool = False,
) -> Call[Reply]:
    """Calls a web service, with the call that takes it back. Write secrets as ``${env:NAME}``."""
    words = ["http", *flags(irreversible=irreversible)]
    for name, value in (headers or {}).items():
        words += ["--header", f"{name}: {value}"]
    if timeout is not None:
        words += ["--timeout", format(timeout, "g")]
    stdin = data.encode() if isinstance(data, str) else data
    if json_body is not None:
        words.append("--json-body")
        stdin = json.dumps(json_body).encode()
    if stdin is not None:
        words += ["--data", "@-"]
    return Call([*words, "--", method, url], Reply, stdin)


def run(
    command: Sequence[str] | str,
    *,
    stdin: str | bytes | None = None,
    timeout: float | None = None,
    on_failure: Literal["keep", "rollback"] = "keep",
    durability: Literal["process", "power"] = "process",
    reads: bool = False,
    check: bool = False,
) -> Call[Ran]:
    """Runs a command so that everything it does to files is one operation. A text is run by ``sh -c``."""
    words = ["run", f"--on-failure={on_failure}", f"--durability={durability}", *flags(reads=reads)]
    if timeout is not None:
        words += ["--timeout", f"{max(1, round(timeout * 1000))}ms"]
    argv = ["sh", "-c", command] if isinstance(command, str) else list(command)
    given = stdin.encode() if isinstance(stdin, str) else stdin

    def unread(_: dict[str, Any]) -> Ran:
        raise AssertionError("the answer of `run` is read from another stream")

    return Call([*words, "--", *argv], unread, given, is_run=True, check=check)


def log(target: Name | None = None, *, limit: int = 25) -> Call[list[Operation]]:
    """Lists operations, newest first; ``limit=0`` lists all."""
    named = [] if target is None else ["--", os.fspath(target)]
    return Call(["log", "--limit", str(limit), *named], replies.operations)


def show(operation: str = "@") -> Call[Operation]:
    """Shows one operation with all that is known of it."""
    return Call(["show", "--", operation], replies.shown)


def diff(operation: str = "@", *, only: Sequence[str] = (), exclude: Sequence[str] = ()) -> Call[Reply]:
    """Shows what one operation changed."""
    return Call(["diff", *chosen(only, exclude), "--", operation], Reply)


def status() -> Call[Reply]:
    """Shows where things stand."""
    return Call(["status"], Reply)


def undo(
    *what: Name,
    on_conflict: OnConflict = "refuse",
    partial: bool = False,
    only: Sequence[str] = (),
    exclude: Sequence[str] = (),
    at: str | None = None,
    everywhere: bool = False,
    others: bool = False,
    committed: bool = False,
    why: str | None = None,
) -> Call[Undone]:
    """Takes back operations, paths or other targets, with everything that was built on them."""
    words = ["undo", *taking(on_conflict, partial, only, exclude, others, committed, why)]
    words += flags(everywhere=everywhere) + ([f"--at={at}"] if at is not None else [])
    return Call([*words, "--", *names(what)], replies.undone)


def preview(
    *what: Name,
    on_conflict: OnConflict = "refuse",
    partial: bool = False,
    only: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Call[Plan]:
    """Says what an undo would do, and touches nothing."""
    words = ["undo", "--dry-run", *taking(on_conflict, partial, only, exclude, False, False, None)]
    return Call([*words, "--", *names(what)], replies.plan)


def redo(
    *what: str,
    on_conflict: OnConflict = "refuse",
    partial: bool = False,
    only: Sequence[str] = (),
    exclude: Sequence[str] = (),
    everywhere: bool = False,
) -> Call[Undone]:
    """Brings back what was undone."""
    words = ["redo", *taking(on_conflict, partial, only, exclude, False, False, None), *flags(everywhere=everywhere)]
    return Call([*words, "--", *what], replies.undone)


def rollback(
    task: str | None = None,
    *,
    to: str | None = None,
    on_conflict: OnConflict = "refuse",
    partial: bool = False,
    trigger: str | None = None,
    why: str | None = None,
) -> Call[Undone]:
    """Takes a whole task back, or everything since a checkpoint."""
    words = ["rollback", *taking(on_conflict, partial, (), (), False, False, why)]
    words += [f"--to={to}"] if to is not None else []
    words += [f"--trigger={trigger}"] if trigger is not None else []
    return Call([*words, *([] if task is None else ["--", task])], replies.undone)


def commit(task: str | None = None) -> Call[Reply]:
    """Keeps the operations of a task. They can still be undone by name."""
    return Call(["commit", *([] if task is None else ["--", task])], Reply)


def restore(*paths: Name, source: str, after: bool = False) -> Call[Recorded]:
    """Makes paths what they were before an operation, or what it made of them."""
    return Call(["restore", f"--from={source}", *flags(after=after), "--", *names(paths)], replies.recorded)


def checkpoint(
    name: str | None = None,
    *,
    state: Any = None,
    step: int | None = None,
    of: int | None = None,
    decisions: Sequence[str] = (),
    summary: str | None = None,
    environment: Mapping[str, str | None] | None = None,
    reason: str | None = None,
    pid: int | None = None,
) -> Call[Checkpoint]:
    """Marks this point, with whatever the agent wants to find again: ``step`` of its steps are done."""
    words = ["checkpoint", "--state=@-"]
    words += [f"--step={step}" if of is None else f"--step={step}/{of}"] if step is not None else []
    words += [f"--decision={it}" for it in decisions]
    words += [f"--summary={summary}"] if summary is not None else []
    for variable, value in (environment or {}).items():
        words.append(f"--env=-{variable}" if value is None else f"--env={variable}={value}")
    words += [f"--reason={reason}"] if reason is not None else []
    words += [f"--pid={pid}"] if pid is not None else []
    stdin = json.dumps(state).encode()
    return Call([*words, *([] if name is None else ["--", name])], replies.checkpoint, stdin)


def resume(
    task: str | None = None,
    *,
    source: str | None = None,
    on_conflict: OnConflict = "refuse",
    keep: bool = False,
    takeover: bool = False,
    dry_run: bool = False,
) -> Call[Resumed]:
    """Goes on where an agent was: what it did after its newest good checkpoint is taken back, unless it is committed."""
    words = ["resume", *flags(merge=on_conflict == "merge", force=on_conflict == "force", keep=keep)]
    words += flags(takeover=takeover, dry_run=dry_run)
    words += [f"--from={source}"] if source is not None else []
    return Call([*words, *([] if task is None else ["--", task])], replies.resumed)


def stage_begin(name: str, *, on_failure: str | None = None) -> Call[Reply]:
    """Begins a stage."""
    words = ["stage", "begin", *([f"--on-failure={on_failure}"] if on_failure is not None else [])]
    return Call([*words, "--", name], Reply)


def stage_end(name: str, *, failed: bool = False, why: str | None = None) -> Call[Reply]:
    """Ends a stage; one that failed goes back to where it began, unless somebody said otherwise."""
    words = ["stage", "end", *flags(failed=failed), *([f"--why={why}"] if why is not None else [])]
    return Call([*words, "--", name], Reply)


def checkpoints() -> Call[list[Checkpoint]]:
    """Lists the marks, newest first."""
    return Call(["checkpoint", "--list"], replies.checkpoints)


def recover() -> Call[Reply]:
    """Settles what dead processes left behind."""
    return Call(["recover"], Reply)


def verify() -> Call[Reply]:
    """Checks the whole store."""
    return Call(["verify"], Reply)


def begin(name: str | None = None, *, owner_pid: int | None = None) -> Call[Reply]:
    """Begins a task. If its owner dies, the task is rolled back."""
    words = ["task", "begin", *([f"--owner-pid={owner_pid}"] if owner_pid is not None else [])]
    return Call([*words, *([] if name is None else ["--", name])], Reply)


def flags(**given: bool) -> list[str]:
    """Writes the options that are set."""
    return [f"--{name.replace('_', '-')}" for name, is_set in given.items() if is_set]


def names(paths: Iterable[Name]) -> list[str]:
    """Writes names as they are."""
    return [os.fspath(path) for path in paths]


def key(once: str | None) -> list[str]:
    """Writes the key under which a call is made at most once."""
    return [] if once is None else [f"--once={once}"]


def chosen(only: Sequence[str], exclude: Sequence[str]) -> list[str]:
    """Writes which targets are meant."""
    return [*(f"--only={it}" for it in only), *(f"--exclude={it}" for it in exclude)]


def taking(
    on_conflict: OnConflict,
    partial: bool,
    only: Sequence[str],
    exclude: Sequence[str],
    others: bool,
    committed: bool,
    why: str | None,
) -> list[str]:
    """Writes how something is taken back."""
    words = flags(merge=on_conflict == "merge", force=on_conflict == "force", partial=partial)
    words += flags(others=others, committed=committed) + chosen(only, exclude)
    return words + ([f"--why={why}"] if why is not None else [])
