"""Tasks are kept or rolled back as one, by the end of a block and by the end of a process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import backout
from backout import AsyncBackout, Backout


def test_an_exception_rolls_the_whole_task_back(client: Backout, world: Path) -> None:
    (world / "a").write_text("mine\n")
    with pytest.raises(ZeroDivisionError), client.task("fix") as task:
        task.write("a", "agent\n")
        task.run("echo b >b")
        1 / 0  # noqa: B018
    assert (world / "a").read_text() == "mine\n"
    assert not (world / "b").exists()
    newest = client.log(limit=1)[0]
    assert newest.raw["trigger"]["kind"] == "plan-failure"
    assert newest.raw["trigger"]["why"] == "ZeroDivisionError: division by zero"


def test_a_task_that_ends_is_kept_and_can_still_be_rolled_back(client: Backout, world: Path) -> None:
    with client.task() as task:
        task.write("a", "1")
        name = task.name
    assert name and (world / "a").read_text() == "1"
    client.rollback(name)
    assert not (world / "a").exists()


def test_an_exception_in_a_task_that_wrote_nothing_is_just_the_exception(client: Backout) -> None:
    with pytest.raises(KeyError), client.task("empty"):
        raise KeyError("x")


def test_a_rollback_that_meets_a_persons_edit_says_so_and_keeps_it(client: Backout, world: Path) -> None:
    with pytest.raises(backout.RollbackFailed) as failed, client.task("fix") as task:
        task.write("a", "agent\n")
        (world / "a").write_text("a person\n")
        raise ValueError("no")
    assert isinstance(failed.value.__cause__, ValueError)
    assert failed.value.error.code == "conflict"
    assert (world / "a").read_text() == "a person\n"


def test_a_process_that_dies_in_a_task_leaves_nothing_behind(client: Backout, world: Path) -> None:
    (world / "a").write_text("mine\n")
    program = (
        "import backout, sys\n"
        f"b = backout.Backout(directory={str(world)!r}, state_dir={client.state_dir!r})\n"
        "with b.task('doomed') as task:\n"
        "    task.write('a', 'half done')\n"
        "    print('written', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ
    )
    assert child.stdout is not None and child.stdout.readline() == b"written\n"
    assert (world / "a").read_text() == "half done"
    child.send_signal(signal.SIGKILL)
    child.wait()
    client.recover()
    assert (world / "a").read_text() == "mine\n"


def test_calls_run_side_by_side_in_asyncio(async_client: AsyncBackout, world: Path) -> None:
    async def work() -> None:
        async with async_client.task("many") as task:
            await asyncio.gather(*(task.write(f"f{n}", str(n)) for n in range(8)))
        assert len(list(world.iterdir())) == 8
        await async_client.rollback("many")

    asyncio.run(work())
    assert list(world.iterdir()) == []


def test_an_exception_rolls_an_asyncio_task_back(async_client: AsyncBackout, world: Path) -> None:
    async def work() -> None:
        async with async_client.task("fix") as task:
            await task.write("a", "x")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        asyncio.run(work())
    assert not (world / "a").exists()


def test_a_cancelled_command_ends_and_its_task_is_rolled_back(async_client: AsyncBackout, world: Path) -> None:
    async def work() -> None:
        async with async_client.task("slow") as task:
            running = asyncio.create_task(task.run("echo began >began; exec sleep 600"))
            while not (world / "began").exists():
                await asyncio.sleep(0.01)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        asyncio.run(work())
    assert not (world / "began").exists()
