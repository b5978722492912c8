"""The same client for ``asyncio``."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from . import _calls
from ._client import Caller, told
from ._errors import BackoutError, RollbackFailed
from ._program import Call, Printed, stop_signal

P = ParamSpec("P")
T = TypeVar("T")


def method(build: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncBackout, P], Coroutine[Any, Any, T]]:
    """Makes a method that carries a call out without blocking the loop."""

    @functools.wraps(build)
    async def carry_out(self: AsyncBackout, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._do(build(*args, **kwargs))

    return carry_out


class AsyncBackout(Caller):
    """Asks the program without blocking the loop. Several calls may be under way at once.

    A call that is cancelled stops as on Ctrl-C: the step under way is put back.
    """

    async def _do(self, call: Call[T]) -> T:
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        child = await asyncio.create_subprocess_exec(
            *self._argv(call),
            cwd=self.directory,
            stdin=pipe if call.stdin is not None else nothing,
            stdout=pipe,
            stderr=pipe,
        )
        try:
            stdout, stderr = await child.communicate(call.stdin)
        except asyncio.CancelledError:
            if child.returncode is None:
                child.send_signal(stop_signal())
                await child.wait()
            raise
        return self._read(call, Printed(child.returncode or 0, stdout, stderr))

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

    def task(self, name: str | None = None) -> AsyncTask:
        """Groups work: kept if the ``async with`` block ends, rolled back if an exception leaves it or this process dies."""
        return AsyncTask(self, name)


class AsyncTask(AsyncBackout):
    """The operations of one piece of work. Use it in an ``async with`` statement."""

    def __init__(self, outer: AsyncBackout, name: str | None) -> None:
        super().__init__(**outer._within(name or ""))
        self._wanted = name

    @property
    def name(self) -> str:
        """Its name in the journal."""
        return self._task or ""

    async def __aenter__(self) -> AsyncTask:
        self._task = None
        begun = await self._begin(self._wanted, owner_pid=os.getpid())
        self._task = str(begun.raw["id"])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self._commit(self.name)
            return
        try:
            # The rollback is not cancelled with the work that it takes back.
            await asyncio.shield(self.rollback(self.name, trigger="plan-failure", why=told(error)))
        except BackoutError as failed:
            if failed.code != "nothing":
                raise RollbackFailed(self.name, failed) from error
