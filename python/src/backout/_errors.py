"""What can go wrong, as the program says it: what happened, why, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._replies import Ran, Reply


class BackoutError(Exception):
    """Something was not, or not wholly, done.

    ``code`` is stable and meant for programs. ``reply`` is there if a part was done.
    """

    def __init__(self, error: dict[str, Any], *, exit_code: int, reply: Reply | None = None) -> None:
        self.raw = error
        self.code: str = error.get("code", "unknown")
        self.what: str = error.get("what", "the program did not say what happened")
        self.why: list[str] = list(error.get("why", []))
        self.next: list[str] = [step.get("text", "") for step in error.get("next", [])]
        self.operation: str | None = error.get("operation")
        self.exit_code = exit_code
        self.reply = reply
        super().__init__(self.text())

    def text(self) -> str:
        """Says it in words that a person or a model can act on."""
        lines = [self.what]
        lines += [f"  why: {why}" for why in self.why]
        lines += [f"  next: {step}" for step in self.next]
        return "\n".join(lines)


class Refused(BackoutError):
    """Nothing was done, or only what ``reply`` tells."""


class Waits(Refused):
    """A rule wants a person to decide first. Nothing was written; ``operation`` is what waits."""


class UsageError(BackoutError):
    """The call was wrong."""


class BrokenStore(BackoutError):
    """The store is damaged. ``backout doctor`` says how to go on."""


class Interrupted(BackoutError):
    """A signal stopped it. What was under way was put back."""


class NothingHappened(Exception):
    """Raise it in a function under ``reversible`` that did nothing: then nothing is left to take back."""


class ProgramMissing(Exception):
    """The ``backout`` program was not found."""


class CommandFailed(Exception):
    """A command under ``run(..., check=True)`` did not succeed. What it did is recorded, and can be undone."""

    def __init__(self, ran: Ran) -> None:
        self.ran = ran
        super().__init__(f"{ran.summary} ended with {ran.exit_code}; take it back with undo({ran.id!r})")


class RollbackFailed(Exception):
    """A task was to be rolled back, and not all of it was. The exception that set it off is the cause."""

    def __init__(self, task: str, error: BackoutError) -> None:
        self.task = task
        self.error = error
        super().__init__(f"task {task} was not wholly rolled back: {error}")


def error_of(error: dict[str, Any], exit_code: int, reply: Reply | None) -> BackoutError:
    """Makes the exception for an error that the program printed."""
    kinds: dict[int, type[BackoutError]] = {2: UsageError, 3: BrokenStore, 130: Interrupted}
    kind = kinds.get(exit_code, Refused)
    if error.get("code") == "waits":
        kind = Waits
    return kind(error, exit_code=exit_code, reply=reply)
