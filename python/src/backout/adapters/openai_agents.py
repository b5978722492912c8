"""Tools for the OpenAI Agents SDK: ``Agent(name=..., tools=tools(client))``."""

from __future__ import annotations

from agents import Tool, function_tool

from .._client import Backout
from ..tools import tools_of


def tools(client: Backout) -> list[Tool]:
    """Gives the tools as the SDK knows them."""
    return [function_tool(tool) for tool in tools_of(client)]
