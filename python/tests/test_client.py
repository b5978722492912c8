"""What is written comes back, and what is said is so."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import backout
from backout import Backout


def test_a_write_is_undone_and_redone(client: Backout, world: Path) -> None:
    (world / "notes").write_text("mine\n")
    written = client.write("notes", "the agent's\n")
    assert (world / "notes").read_text() == "the agent's\n"
    undone = client.undo(written.id)
    assert undone.ids == (written.id,)
    assert [(it.target, it.outcome) for it in undone.outcomes] == [(str(world / "notes"), "restored")]
    assert (world / "notes").read_text() == "mine\n"
    client.redo()
    assert (world / "notes").read_text() == "the agent's\n"


def test_bytes_and_names_that_are_no_text_are_written_as_they_are(client: Backout, world: Path) -> None:
    name = os.fsdecode(b"-odd\xff name")
    undone_later = client.write(name, b"\x00\xff\n")
    assert (world / name).read_bytes() == b"\x00\xff\n"
    outcome = client.undo(undone_later.id).outcomes[0]
    assert outcome.target == str(world / name)
    assert not (world / name).exists()


def test_every_way_to_change_a_file_is_one_call(client: Backout, world: Path) -> None:
    client.write("d/a", "one two two\n", parents=True, mode=0o600)
    client.edit("d/a", "two", "three", nth=2)
    client.patch("--- a/d/a\n+++ b/d/a\n@@ -1 +1,2 @@\n one two three\n+four\n")
    client.copy("d/a", "d/b")
    client.move("d/b", "d/c")
    client.mkdir("e/f", parents=True)
    client.batch([{"write": {"path": "g", "text": "g"}}, {"remove": {"path": "d/c"}}])
    client.write("g", "h", append=True)
    assert (world / "d/a").read_text() == "one two three\nfour\n"
    assert (world / "d/a").stat().st_mode & 0o777 == 0o600
    assert not (world / "d/c").exists()
    assert (world / "g").read_text() == "gh"
    client.remove("d", "e", recursive=True)
    assert sorted(it.name for it in world.iterdir()) == ["g"]
    for operation in client.log(limit=0):
        if operation.in_effect and operation.verb not in ("undo", "redo"):
            client.undo(operation.id)
    assert list(world.iterdir()) == []


def test_keys_of_config_files_take_what_json_can_say(client: Backout, world: Path) -> None:
    (world / "app.toml").write_text("# ports\nport = 80 # web\n")
    client.set("app.toml", "port", 8080)
    client.set("app.toml", "name", "true")
    client.merge("app.toml", {"tls": {"on": True}})
    assert "port = 8080 # web" in (world / "app.toml").read_text()
    assert 'name = "true"' in (world / "app.toml").read_text()
    undone = client.undo("app.toml:port")
    assert undone.outcomes[0].target == f"{world / 'app.toml'}:port"
    text = (world / "app.toml").read_text()
    assert "port = 80 # web" in text and 'name = "true"' in text
    client.unset("app.toml", "name")
    assert "name" not in (world / "app.toml").read_text()


def test_a_command_is_one_operation_with_its_own_streams(client: Backout, world: Path) -> None:
    ran = client.run("cat; echo made >f; printf 'no newline' >&2; exit 3", stdin="given\n")
    assert (ran.exit_code, ran.ok, ran.stdout, ran.stderr) == (3, False, "given\n", "no newline")
    assert ran.changed
    client.undo(ran.id)
    assert not (world / "f").exists()


def test_a_command_that_must_succeed_raises_and_can_be_undone(client: Backout, world: Path) -> None:
    with pytest.raises(backout.CommandFailed) as failed:
        client.run(["sh", "-c", "echo x >f; false"], check=True)
    assert (world / "f").exists()
    client.undo(failed.value.ran.id)
    assert not (world / "f").exists()


def test_rows_are_read_written_and_taken_back(client: Backout, world: Path) -> None:
    client.sql("shop.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, n); INSERT INTO t VALUES (1, 'a')", create=True)
    changed = client.sql("shop.db", "UPDATE t SET n = 'b'")
    assert isinstance(changed, backout.Recorded)
    client.undo(changed.id)
    rows = client.sql("shop.db", "SELECT id, n FROM t")
    assert isinstance(rows, backout.Rows)
    assert rows.results[0]["rows"] == [[1, "a"]]


def test_a_preview_touches_nothing_and_says_what_stands_in_the_way(client: Backout, world: Path) -> None:
    written = client.write("f", "agent\n")
    (world / "f").write_text("a person\n")
    plan = client.preview(written.id)
    assert not plan.is_executable
    assert plan.targets[0].outcome == "conflict"
    with pytest.raises(backout.Refused) as refused:
        client.undo(written.id)
    assert refused.value.code == "conflict"
    assert (world / "f").read_text() == "a person\n"
    forced = client.undo(written.id, on_conflict="force")
    assert forced.outcomes[0].outcome == "overwritten"
    client.redo(str(forced.act))
    assert (world / "f").read_text() == "a person\n"


def test_a_key_makes_a_call_happen_once(client: Backout, world: Path) -> None:
    first = client.write("f", "x", append=True, once="turn-7")
    again = client.write("f", "x", append=True, once="turn-7")
    assert first.id == again.id
    assert (world / "f").read_text() == "x"


def test_checkpoints_carry_the_agents_own_state(client: Backout, world: Path) -> None:
    client.write("f", "1")
    client.checkpoint("before", state={"step": 3, "seen": ["a", None]})
    client.write("f", "2")
    assert client.checkpoints()[0].state == {"step": 3, "seen": ["a", None]}
    client.rollback(to="before")
    assert (world / "f").read_text() == "1"


def test_what_a_rule_denies_or_holds_is_told_as_such(client: Backout, world: Path) -> None:
    (world / "backout.toml").write_text('[protect]\ndeny = ["secret/**"]\nask = ["deploy/**"]\n')
    with pytest.raises(backout.Refused) as denied:
        client.write("secret/a", "x", parents=True)
    assert denied.value.code == "gate"
    assert "protected" in str(denied.value) and denied.value.next
    with pytest.raises(backout.Waits) as waits:
        client.write("deploy/a", "x", parents=True)
    assert waits.value.operation
    assert not (world / "deploy").exists() and not (world / "secret").exists()
    assert client.show(waits.value.operation).status == "proposed"


def test_a_wrong_call_and_a_missing_program_are_told(client: Backout, world: Path) -> None:
    with pytest.raises(backout.Refused) as missing:
        client.edit("nowhere", "a", "b")
    assert missing.value.code == "not-found"
    with pytest.raises(backout.UsageError):
        client.rollback(trigger="no such thing")
    with pytest.raises(backout.Refused) as unknown:
        client.run(["no-such-program-here"])
    assert unknown.value.code == "not-started"
    assert json.loads(json.dumps(unknown.value.raw))["code"] == "not-started"


def test_the_program_is_found_or_its_absence_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BACKOUT_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    with pytest.raises(backout.ProgramMissing, match="BACKOUT_PROGRAM"):
        Backout()
    monkeypatch.setenv("BACKOUT_PROGRAM", "/somewhere/backout")
    assert Backout().program == "/somewhere/backout"
