"""Every write of an AI agent, reversible.

``Backout`` asks the ``backout`` program; no server is needed. A task is a context manager that rolls back on an exception::

    import backout

    with backout.Backout(agent="fixer").task("rename") as task:
        task.edit("app.py", search="old", replace="new")
        task.run(["pytest", "-q"], check=True)

What was written can be looked at, previewed and taken back afterwards, by this process or any other.
"""

from ._aio import AsyncBackout, AsyncTask
from ._client import Backout, Task
from ._errors import (
    BackoutError,
    BrokenStore,
    CommandFailed,
    Interrupted,
    NothingHappened,
    ProgramMissing,
    Refused,
    RollbackFailed,
    UsageError,
    Waits,
)
from ._replies import Checkpoint, Operation, Outcome, Plan, Ran, Recorded, Reply, Resumed, Rows, Undone
from ._resumable import Resumable
from ._reversible import Reversible

__all__ = [
    "AsyncBackout",
    "AsyncTask",
    "Backout",
    "BackoutError",
    "BrokenStore",
    "Checkpoint",
    "CommandFailed",
    "Interrupted",
    "NothingHappened",
    "Operation",
    "Outcome",
    "Plan",
    "ProgramMissing",
    "Ran",
    "Recorded",
    "Refused",
    "Reply",
    "Resumable",
    "Resumed",
    "Reversible",
    "RollbackFailed",
    "Rows",
    "Task",
    "Undone",
    "UsageError",
    "Waits",
]
