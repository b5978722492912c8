"""An agent that is ended goes on where it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backout import Backout

AGENT = """
import os, signal, sys
import backout
b = backout.Backout(agent="robin", directory={world!r}, state_dir={state!r})
did = []
with b.resumable("plan", state=lambda: did, every=2) as task:
    first = task.resumed.next_step if task.resumed else 1
    did += task.resumed.state if task.resumed else []
    for step in range(first, 4):
        with task.bracket(step, of=3, decision=f"step {{step}}"):
            task.write("notes", f"{{step}}\\n", append=True)
            if sys.argv[1] == str(step):
                os.kill(os.getpid(), getattr(signal, sys.argv[2]))
            task.write("notes", f"{{step}} again\\n", append=True)
            did.append(step)
print("ended", did)
"""


def agent(client: Backout, world: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = AGENT.format(world=str(world), state=client.state_dir)
    return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, env=os.environ)


@pytest.mark.parametrize("step", ["1", "2", "3"])
@pytest.mark.parametrize("sign", ["SIGKILL", "SIGTERM"])
def test_an_agent_that_is_ended_goes_on_where_it_was(client: Backout, world: Path, step: str, sign: str) -> None:
    ended = agent(client, world, step, sign)
    assert ended.returncode == (-9 if sign == "SIGKILL" else 128 + signal.SIGTERM), ended.stderr
    again = agent(client, world, "0", "SIGKILL")
    assert again.stdout == "ended [1, 2, 3]\n", again.stderr
    expected = "".join(f"{step}\n{step} again\n" for step in (1, 2, 3))
    assert (world / "notes").read_text() == expected
    assert [task["status"] for task in client.status().raw["open_tasks"]] == []


def test_a_step_that_fails_is_taken_back_and_the_task_stays_open(client: Backout, world: Path) -> None:
    with pytest.raises(ZeroDivisionError), client.resumable("plan") as task:
        with task.bracket(1, of=2):
            task.write("a", "kept")
        with task.bracket(2, of=2):
            task.write("b", "gone")
            1 / 0  # noqa: B018
    assert (world / "a").read_text() == "kept" and not (world / "b").exists()
    resumed = client.resume("plan")
    assert resumed.next_step == 2 and resumed.reverted == ()


def test_a_checkpoint_is_taken_after_so_many_operations(client: Backout, world: Path) -> None:
    count = 0
    with client.resumable("plan", state=lambda: count, every=2) as task:
        for count in range(1, 6):
            task.write(str(count), "x")
    reasons = [mark.raw["resume"]["reason"] for mark in client.checkpoints()]
    assert reasons == ["interval", "interval", "asked"]
    assert [mark.state for mark in client.checkpoints()] == [4, 2, 0]
