"""Tools for a model: the writes and the ways back, as plain functions that answer in words.

Each framework has its own idea of a tool; ``backout.adapters`` turns these functions into it. A refusal is an answer, not an
exception: it tells the model what happened, why, and what to do next. The tools take back only work of the same agent.
"""

from __future__ import annotations

from collections.abc import Callable

from ._client import Backout
from ._errors import BackoutError
from ._replies import Operation, Plan, Ran, Recorded, Undone

OUTPUT_MAX = 20_000
"""How many characters of a command's output the model is told; the end is what counts."""


def tools_of(client: Backout) -> list[Callable[..., str]]:
    """Gives the tools that act for one client."""

    def write_file(path: str, content: str) -> str:
        """Write a file's whole content, making missing directories. The old content is kept and can be brought back."""
        return said(lambda: recorded(client.write(path, content, parents=True)))

    def edit_file(path: str, search: str, replace: str) -> str:
        """Replace a text that is in a file exactly once. The change can be undone."""
        return said(lambda: recorded(client.edit(path, search, replace)))

    def remove_path(path: str, recursive: bool = False) -> str:
        """Remove a file, or with recursive a whole directory. It is kept and can be brought back."""
        return said(lambda: recorded(client.remove(path, recursive=recursive)))

    def move_path(source: str, destination: str) -> str:
        """Move or rename a file or a directory. The move can be undone."""
        return said(lambda: recorded(client.move(source, destination)))

    def run_command(command: str, timeout_seconds: float = 600) -> str:
        """Run a shell command. Everything that it does to files is one operation and can be undone."""
        return said(lambda: ran(client.run(command, timeout=timeout_seconds)))

    def list_operations(limit: int = 20) -> str:
        """List what was done lately, newest first, with the ids that undo takes."""
        return said(lambda: listed(client.log(limit=limit)))

    def preview_undo(operation: str) -> str:
        """Say what taking back an operation would do, and what stands in the way. Nothing is touched."""
        return said(lambda: planned(client.preview(operation)))

    def undo(operation: str) -> str:
        """Take back one operation of yours and everything that was built on it. Later independent work stays."""
        return said(lambda: taken_back(client, operation))

    return [
        write_file,
        edit_file,
        remove_path,
        move_path,
        run_command,
        list_operations,
        preview_undo,
        undo,
    ]


def said(act: Callable[[], str]) -> str:
    """Does something, or says why it was not done."""
    try:
        return act()
    except BackoutError as error:
        return f"error: {error.text()}"


def recorded(reply: Recorded) -> str:
    """Tells a write and the id that takes it back."""
    notes = "".join(f"\nnote: {note}" for note in reply.notes)
    return f"done: {reply.summary} (operation {reply.id}){notes}"


def listed(operations: list[Operation]) -> str:
    """Lists operations, a line each."""
    lines = [f"{it.id}  {it.status}  {it.summary}" for it in operations]
    return "\n".join(lines) or "nothing was done yet"


def ran(reply: Ran) -> str:
    """Tells how a command ended and the end of what it printed."""
    end = f"exit code {reply.exit_code}" if reply.exit_code is not None else f"ended by signal {reply.signal}"
    output = (reply.stdout + reply.stderr).strip()
    if len(output) > OUTPUT_MAX:
        output = f"[{len(output) - OUTPUT_MAX} characters left out]\n{output[-OUTPUT_MAX:]}"
    return f"{end} (operation {reply.id})\n{output}".rstrip()


def planned(plan: Plan) -> str:
    """Tells what an undo would do."""
    lines = [f"{it.target}: {it.outcome}{f' ({it.why})' if it.why else ''}" for it in plan.targets]
    head = "an undo would do this:" if plan.is_executable else "an undo would be refused:"
    return "\n".join([head, *lines])


def taken_back(client: Backout, operation: str) -> str:
    """Takes back an operation of the client's own agent."""
    owner = client.show(operation).agent
    if client.agent is not None and owner != client.agent:
        return f"error: {operation} is the work of {owner or 'a person'}; only they or a person may take it back"
    done: Undone = client.undo(operation)
    lines = [f"{it.target}: {it.outcome}{f' ({it.why})' if it.why else ''}" for it in done.outcomes]
    return "\n".join([f"undone (bring it back with redo {done.act}):", *lines])
