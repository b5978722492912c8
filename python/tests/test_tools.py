"""The tools that a model gets answer in words, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import backout
from backout import Backout
from backout.tools import OUTPUT_MAX, tools_of


def by_name(client: Backout) -> dict[str, Callable[..., str]]:
    """Finds tools by their names."""
    return {tool.__name__: tool for tool in tools_of(client)}


def test_a_model_writes_looks_and_takes_back(client: Backout, world: Path) -> None:
    tools = by_name(client)
    answer = tools["write_file"]("d/a", "one\n")
    operation = answer.rpartition("operation ")[2].rstrip(")")
    assert tools["edit_file"]("d/a", "one", "two").startswith("done: ")
    assert operation in tools["list_operations"]()
    assert "comes-back" in tools["preview_undo"](operation)
    assert "restored" in tools["undo"](operation)
    assert not (world / "d").exists()


def test_a_refusal_is_an_answer(client: Backout, world: Path) -> None:
    tools = by_name(client)
    answer = tools["edit_file"]("nowhere", "a", "b")
    assert answer.startswith("error: ") and "next: " in answer
    assert tools["undo"]("@").startswith("error: ")


def test_the_end_of_a_long_output_is_told(client: Backout) -> None:
    answer = by_name(client)["run_command"](f"head -c {3 * OUTPUT_MAX} /dev/zero | tr '\\0' x; echo; echo the end; exit 4")
    assert answer.startswith("exit code 4 (operation ")
    assert answer.endswith("the end") and "characters left out" in answer
    assert len(answer) < OUTPUT_MAX + 200


def test_anothers_work_is_not_taken_back(client: Backout, world: Path) -> None:
    other = Backout(agent="other", directory=world, state_dir=client.state_dir).write("a", "theirs")
    answer = by_name(client)["undo"](other.id)
    assert "is the work of other" in answer
    assert (world / "a").read_text() == "theirs"


def test_what_has_to_be_approved_is_told_with_the_id_that_waits(client: Backout, world: Path) -> None:
    (world / "backout.toml").write_text('[protect]\nask = ["**"]\n')
    answer = by_name(client)["write_file"]("a", "x")
    waiting = [it for it in client.log(limit=5) if it.status == "proposed"]
    assert waiting and waiting[0].id[:8] in answer
    assert isinstance(waiting[0], backout.Operation)
