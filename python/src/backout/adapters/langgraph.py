"""Tools for LangGraph and LangChain: ``create_react_agent(model, tools(client))``."""

from __future__ import annotations

from langchain_core.tools import BaseTool, StructuredTool

from .._client import Backout
from ..tools import tools_of


def tools(client: Backout) -> list[BaseTool]:
    """Gives the tools as LangChain knows them."""
    return [StructuredTool.from_function(tool) for tool in tools_of(client)]
