"""The client for ordinary code, and tasks as context managers."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from . import _calls
from ._errors import BackoutError, CommandFailed, RollbackFailed
from ._program import Call, Printed, answer, answer_of_run, find_program, stop_signal
from ._replies import Ran

if TYPE_CHECKING:
    from ._resumable import Resumable
    from ._reversible import Decorator

P = ParamSpec("P")
T = TypeVar("T")


class Caller:
    """Who asks, and where: what every call has in common."""

    def __init__(
        self,
        *,
        agent: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        program: str | os.PathLike[str] | None = None,
        task: str | None = None,
    ) -> None:
        self.agent = agent
        self.directory = os.fspath(directory) if directory is not None else None
        self.state_dir = os.fspath(state_dir) if state_dir is not None else None
        self.program = os.fspath(program) if program is not None else find_program()
        self._task = task

    def _argv(self, call: Call[T]) -> list[str]:
        words = [self.program, "--json", "--no-pager"]
        for name, value in (("state-dir", self.state_dir), ("agent", self.agent), ("task", self._task)):
            words += [f"--{name}={value}"] if value is not None else []
        return [*words, *call.words]

    def _read(self, call: Call[T], printed: Printed) -> T:
        if not call.is_run:
            return answer(call, printed)
        ran: Ran = answer_of_run(printed)
        if call.check and not ran.ok:
            raise CommandFailed(ran)
        return ran  # type: ignore[return-value]  # a call of `run` is a Call[Ran]

    def _within(self, task: str) -> dict[str, str | None]:
        return {
            "agent": self.agent,
            "directory": self.directory,
            "state_dir": self.state_dir,
            "program": self.program,
            "task": task,
        }


def method(build: Callable[P, Call[T]]) -> Callable[Concatenate[Backout, P], T]:
    """Makes a method that carries a call out and waits for it."""

    @functools.wraps(build)
    def carry_out(self: Backout, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._do(build(*args, **kwargs))

    return carry_out


class Backout(Caller):
    """Asks the program, and waits for its answer. Safe to share between threads."""

    def _do(self, call: Call[T]) -> T:
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        stdin = pipe if call.stdin is not None else nothing
        with subprocess.Popen(self._argv(call), cwd=self.directory, stdin=stdin, stdout=pipe, stderr=pipe) as child:
            try:
                stdout, stderr = child.communicate(call.stdin)
            except BaseException as error:
                # Ctrl-C reached the program as well: it puts the step under way back, and a second signal would end it at once.
                if not isinstance(error, KeyboardInterrupt):
                    child.send_signal(stop_signal())
                child.wait()
                raise
        return self._read(call, Printed(child.returncode, stdout, stderr))

    write = method(_calls.write)
    edit = method(_calls.edit)
    patch = method(_calls.patch)
    remove = method(_calls.remove)
    move = method(_calls.move)
    copy = method(_calls.copy)
    mkdir = method(_calls.mkdir)
    batch = method(_calls.batch)
    set = method(_calls.set)
    unset = method(_calls.unset)
    merge = method(_calls.merge)
    sql = method(_calls.sql)
    http = method(_calls.http)
    run = method(_calls.run)
    log = method(_calls.log)
    show = method(_calls.show)
    diff = method(_calls.diff)
    status = method(_calls.status)
    undo = method(_calls.undo)
    preview = method(_calls.preview)
    redo = method(_calls.redo)
    rollback = method(_calls.rollback)
    restore = method(_calls.restore)
    checkpoint = method(_calls.checkpoint)
    checkpoints = method(_calls.checkpoints)
    resume = method(_calls.resume)
    stage_begin = method(_calls.stage_begin)
    stage_end = method(_calls.stage_end)
    recover = method(_calls.recover)
    verify = method(_calls.verify)
    _begin = method(_calls.begin)
    _commit = method(_calls.commit)

    def task(self, name: str | None = None) -> Task:
        """Groups work: kept if the ``with`` block ends, rolled back if an exception leaves it or this process dies."""
        return Task(self, name)

    def resumable(self, name: str, *, state: Callable[[], Any] | None = None, every: int = 10) -> Resumable:
        """A task that outlives this process: kept if the ``with`` block ends, gone on with if the process is started again."""
        from ._resumable import Resumable

        return Resumable(self, name, state, every)

    def reversible(
        self,
        *,
        undo: Callable[..., Any],
        look: Callable[..., Any] | None = None,
        answer: Callable[[Any], Any] = lambda result: result,
        timeout: int = 60,
    ) -> Decorator:
        """Makes a function of yours an operation: recorded before it runs, and taken back by ``undo(answer, *arguments)``, also by a later process.

        ``look(*arguments)`` gives the answer, or ``None`` if the effect is not there. ``answer`` makes JSON of what the function gives, for ``undo``.
        Arguments must be JSON, and are kept: no secrets. If the function raises, the effect is looked for and taken back.
        """
        from ._reversible import Decorator

        return Decorator(self, undo, look, answer, timeout)


class Task(Backout):
    """The operations of one piece of work. Use it in a ``with`` statement."""

    def __init__(self, outer: Backout, name: str | None) -> None:
        super().__init__(**outer._within(name or ""))
        self._wanted = name

    @property
    def name(self) -> str:
        """Its name in the journal."""
        return self._task or ""

    def __enter__(self) -> Task:
        self._task = None
        begun = self._begin(self._wanted, owner_pid=os.getpid())
        self._task = str(begun.raw["id"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._commit(self.name)
            return
        try:
            self.rollback(self.name, trigger="plan-failure", why=told(error))
        except BackoutError as failed:
            if failed.code != "nothing":
                raise RollbackFailed(self.name, failed) from error


def told(error: BaseException) -> str:
    """Says in one line why a task is rolled back."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
