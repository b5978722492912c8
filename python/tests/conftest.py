"""A world of its own for every test: a directory to work in, and a store beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

import backout


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """An empty directory."""
    directory = tmp_path / "world"
    directory.mkdir()
    return directory


@pytest.fixture
def client(world: Path, tmp_path: Path) -> backout.Backout:
    """A client that works in that directory."""
    return backout.Backout(agent="tester", directory=world, state_dir=tmp_path / "state")


@pytest.fixture
def async_client(world: Path, tmp_path: Path) -> backout.AsyncBackout:
    """The same for asyncio."""
    return backout.AsyncBackout(agent="tester", directory=world, state_dir=tmp_path / "state")
