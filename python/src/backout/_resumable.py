"""A task that outlives its process: what an agent needs to go on where it was."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, TypeVar

from ._client import Backout, told
from ._errors import BackoutError
from ._program import Call
from ._replies import Checkpoint, Resumed

T = TypeVar("T")

#: The calls that are no operation of the task.
LOOKS = frozenset(
    "checkpoint resume stage undo redo rollback log show diff status task commit recover verify".split(),
)


class Resumable(Backout):
    """A task that the next start of the same agent goes on with. Use it in a ``with`` statement.

    ``resumed`` tells where to go on; it is ``None`` at the first start. ``state`` is asked for what is to be found again, whenever a checkpoint is
    taken: after every ``every`` operations, around each ``bracket``, and on SIGTERM. It is called between two operations, and must tell the truth then.

    The task is committed if the block ends. If an exception leaves it, or the process dies, it stays open: start again, or roll it back.
    """

    def __init__(self, outer: Backout, name: str, state: Callable[[], Any] | None, every: int) -> None:
        super().__init__(**outer._within(name))
        self.name = name
        self.resumed: Resumed | None = None
        self._state = state or (lambda: None)
        self._every = every
        self._since = 0
        self._step: tuple[int | None, int | None] = (None, None)
        self._busy = 0
        self._handler: Any = None

    def __enter__(self) -> Resumable:
        try:
            self.resumed = self.resume(self.name)
            self._step = (self._done(), self.resumed.point.get("step", {}).get("of"))
        except BackoutError as error:
            if error.code == "unknown-task":
                self._task = None
                self._begin(self.name)
                self._task = self.name
            elif error.code != "nothing-to-resume":
                raise
            self.mark()
        if threading.current_thread() is threading.main_thread():
            self._handler = signal.signal(signal.SIGTERM, self._ended)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._handler)
        if error is None:
            self._commit(self.name)

    def mark(self, *, step: int | None = None, of: int | None = None, **more: Any) -> Checkpoint:
        """Takes a checkpoint with the state as it is now; ``step`` of its steps are done."""
        if step is not None:
            self._step = (step, of if of is not None else self._step[1])
        done, total = self._step
        self._since = 0
        return self.checkpoint(state=self._state(), step=done, of=total, pid=os.getpid(), **more)

    @contextmanager
    def bracket(self, step: int, *, of: int | None = None, decision: str | None = None) -> Iterator[Checkpoint]:
        """The recovery bracket around one step: a checkpoint before it is decided, and one when it is written.

        If an exception leaves it, what was written since is taken back. If the process dies in it, ``resume`` does that.
        """
        before = self.mark(step=step - 1, of=of, reason="before-decision")
        self._busy += 1
        try:
            yield before
        except BaseException as error:
            try:
                self.rollback(to=before.name, trigger="plan-failure", why=told(error))
            except BackoutError as failed:
                if failed.code != "nothing":
                    raise
            raise
        finally:
            self._busy -= 1
        self.mark(step=step, of=of, reason="after-commit", decisions=[decision] if decision is not None else [])

    def _done(self) -> int | None:
        assert self.resumed is not None
        done = self.resumed.point.get("step", {}).get("done")
        return int(done) if done is not None else None

    def _do(self, call: Call[T]) -> T:
        is_operation = call.words[0] not in LOOKS
        self._busy += 1
        try:
            answered = super()._do(call)
        finally:
            self._busy -= 1
        self._since += is_operation
        if is_operation and self._since >= self._every and self._busy == 0:
            self.mark(reason="interval")
        return answered

    def _ended(self, number: int, frame: FrameType | None) -> None:
        # In a bracket, or while an operation is under way, the last checkpoint is the true one.
        if self._busy == 0:
            self.mark(reason="signal")
        raise SystemExit(128 + number)
