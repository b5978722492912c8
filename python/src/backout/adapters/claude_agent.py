"""Tools for the Claude Agent SDK: ``ClaudeAgentOptions(mcp_servers={"backout": server(client)})``."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from claude_agent_sdk import McpSdkServerConfig, SdkMcpTool, create_sdk_mcp_server, tool

from .._client import Backout
from ..tools import tools_of


def server(client: Backout) -> McpSdkServerConfig:
    """Gives an MCP server inside of this process."""
    return create_sdk_mcp_server("backout", tools=tools(client))


def tools(client: Backout) -> list[SdkMcpTool[Any]]:
    """Gives the tools one by one."""
    return [of(each) for each in tools_of(client)]


def of(function: Callable[..., str]) -> SdkMcpTool[Any]:
    """Makes a tool whose calls do not block the loop."""
    parameters = inspect.signature(function, eval_str=True).parameters

    async def call(arguments: dict[str, Any]) -> dict[str, Any]:
        text = await asyncio.to_thread(function, **arguments)
        return {"content": [{"type": "text", "text": text}], "is_error": text.startswith("error: ")}

    handler: Callable[[Any], Awaitable[dict[str, Any]]] = call
    return tool(function.__name__, inspect.getdoc(function) or "", schema_of(parameters))(handler)


def schema_of(parameters: Any) -> dict[str, Any]:
    """Writes the parameters of a tool as JSON Schema."""
    kinds = {str: "string", int: "integer", float: "number", bool: "boolean"}
    return {
        "type": "object",
        "properties": {name: {"type": kinds[it.annotation]} for name, it in parameters.items()},
        "required": [name for name, it in parameters.items() if it.default is inspect.Parameter.empty],
    }
