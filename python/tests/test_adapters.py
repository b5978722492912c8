"""The adapters, with the real frameworks. Each is tried if its package is there."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from backout import Backout


def test_langgraph_calls_the_tools(client: Backout, world: Path) -> None:
    pytest.importorskip("langgraph.prebuilt")
    from langchain_core.messages import AIMessage
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    from backout.adapters.langgraph import tools

    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(tools(client)))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    call = {"name": "write_file", "args": {"path": "a", "content": "x"}, "id": "1", "type": "tool_call"}
    ended = graph.compile().invoke({"messages": [AIMessage(content="", tool_calls=[call])]})
    assert ended["messages"][-1].content.startswith("done: ")
    client.undo()
    assert not (world / "a").exists()


def test_openai_agents_run_the_tools(client: Backout, world: Path) -> None:
    agents = pytest.importorskip("agents")
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from backout.adapters.openai_agents import tools

    class Scripted(agents.Model):  # type: ignore[misc,name-defined]
        """A model that writes a file and then says that it is done."""

        def __init__(self) -> None:
            arguments = json.dumps({"path": "a", "content": "x"})
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            self.turns: list[Any] = [
                ResponseFunctionToolCall(type="function_call", call_id="1", name="write_file", arguments=arguments),
                ResponseOutputMessage(id="2", type="message", role="assistant", status="completed", content=[text]),
            ]

        async def get_response(self, *_: Any, **__: Any) -> Any:
            return agents.ModelResponse(output=[self.turns.pop(0)], usage=agents.Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    agents.set_tracing_disabled(True)
    agent = agents.Agent(name="writer", model=Scripted(), tools=tools(client))
    ended = asyncio.run(agents.Runner.run(agent, "write a"))
    assert ended.final_output == "done"
    assert (world / "a").read_text() == "x"
    client.undo()
    assert not (world / "a").exists()


def test_the_claude_agent_sdk_serves_the_tools(client: Backout, world: Path) -> None:
    pytest.importorskip("claude_agent_sdk")
    from backout.adapters.claude_agent import server, tools

    named = {tool.name: tool for tool in tools(client)}

    async def call(name: str, arguments: dict[str, str]) -> dict[str, Any]:
        return await named[name].handler(arguments)

    answer = asyncio.run(call("write_file", {"path": "a", "content": "x"}))
    assert answer["content"][0]["text"].startswith("done: ") and not answer["is_error"]
    refused = asyncio.run(call("undo", {"operation": "none-such"}))
    assert refused["is_error"]
    assert server(client)["name"] == "backout"
    client.undo()
    assert not (world / "a").exists()
