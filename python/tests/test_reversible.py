"""Functions of the caller's own, taken back by processes that know nothing of the caller."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backout import Backout, BackoutError, NothingHappened

USERS = """
import json, os, pathlib, sys
import backout

LIST = pathlib.Path(__file__).with_name("users.json")
client = backout.Backout(agent="robin", directory={world!r}, state_dir={state!r})

def users():
    return json.loads(LIST.read_text()) if LIST.exists() else {{}}

def drop(answer, name, *, role="user"):
    print("this is no answer")
    left = users()
    left.pop(answer["id"], None)
    LIST.write_text(json.dumps(left))

def find(name, *, role="user"):
    return next(({{"id": number}} for number, known in users().items() if known == name), None)

@client.reversible(undo=drop, look=find)
def create(name, *, role="user"):
    print("creating")
    if name == "nobody":
        raise backout.NothingHappened("there is nobody")
    LIST.write_text(json.dumps({{**users(), str(len(users()) + 1): name}}))
    if name == "broken":
        raise ValueError("the service is away")
    if name == "pair":
        create("ann")
        create("bob")
    if name == "dies":
        os._exit(7)
    return find(name)

@client.reversible(undo=drop)
def blind(name):
    raise ValueError("who knows")

if __name__ == "__main__":
    print(json.dumps(create(*sys.argv[1:], role="boss")))
"""


@pytest.fixture
def client(world: Path, tmp_path: Path) -> Backout:
    return Backout(agent="robin", directory=world, state_dir=tmp_path / "state")


@pytest.fixture
def script(client: Backout, world: Path) -> Path:
    file = world / "hire.py"
    file.write_text(USERS.format(world=str(world), state=client.state_dir))
    return file


def call(script: Path, name: str) -> subprocess.CompletedProcess[str]:
    # As a program that has the package: the way back must not need what this process has.
    return subprocess.run([sys.executable, script, name], capture_output=True, text=True, env=os.environ)


def users(script: Path) -> list[str]:
    file = script.with_name("users.json")
    return list(json.loads(file.read_text()).values()) if file.exists() else []


def test_another_process_takes_a_call_back_and_does_it_again(client: Backout, script: Path) -> None:
    called = call(script, "ann")
    assert json.loads(called.stdout.splitlines()[-1]) == {"id": "1"}, called.stderr
    assert users(script) == ["ann"]
    assert client.log()[0].summary == "create('ann', role='boss')"
    for _ in range(2):
        client.undo(everywhere=True)
        assert users(script) == []
        client.redo(everywhere=True)
        assert users(script) == ["ann"]


def test_one_that_calls_another_is_an_operation_of_its_own(client: Backout, script: Path) -> None:
    called = call(script, "pair")
    assert called.returncode == 0, called.stderr
    assert len(client.log()) == 3
    client.undo(everywhere=True)


def test_a_task_takes_calls_back_with_its_files(client: Backout, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.delitem(sys.modules, "hire", raising=False)
    import hire  # type: ignore[import-not-found]  # written by the fixture

    with pytest.raises(RuntimeError), client.task("hire") as task:
        task.write("ann.txt", "new\n")
        assert hire.create.on(task)("ann") == {"id": "1"}
        raise RuntimeError("no budget")
    assert users(script) == []
    assert not script.with_name("ann.txt").exists()


def test_what_fails_is_looked_for_and_taken_back(client: Backout, script: Path) -> None:
    failed = call(script, "broken")
    assert "the service is away" in failed.stderr
    assert users(script) == []
    nothing = call(script, "nobody")
    assert "there is nobody" in nothing.stderr
    died = call(script, "dies")
    assert died.returncode == 7
    # The program that was listening finds that out by itself, a moment later.
    until = time.monotonic() + 60
    while client.log()[0].status == "armed" and time.monotonic() < until:
        time.sleep(0.01)
    assert users(script) == []
    assert {it.status for it in client.log()} <= {"aborted", "undone", "committed"}


def test_what_nobody_can_look_for_is_in_doubt(
    client: Backout, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.delitem(sys.modules, "hire", raising=False)
    import hire

    with pytest.raises(ValueError, match="who knows") as failed:
        hire.blind("ann")
    if sys.version_info >= (3, 11):
        assert "it is not known whether it happened" in failed.value.__notes__[0]
    assert client.log()[0].status == "in-doubt"
    with pytest.raises(NothingHappened):
        hire.create("nobody")


def test_what_no_later_process_could_call_is_refused_at_once(client: Backout) -> None:
    def local() -> None: ...

    for undo in (local, lambda answer: None, print, Path.exists):
        with pytest.raises(TypeError, match="no later process"):
            client.reversible(undo=undo)
    with pytest.raises(TypeError):
        client.reversible(undo=users)(users)(Path())  # not JSON
    with pytest.raises(TypeError, match="does not come back"):
        client.reversible(undo=users)(users)(("a", "b"))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        client.reversible(undo=users)(users)()  # type: ignore[call-arg]
    with pytest.raises(BackoutError):
        client.undo(everywhere=True)
