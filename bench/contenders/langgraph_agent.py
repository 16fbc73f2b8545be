"""langgraph: its agent with streamed chat completions and the SQLite checkpointer at its default durability."""

from __future__ import annotations

import asyncio
import os

from common import BASE_URL, SYSTEM, TASK, WORK, N, run_tool
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


@tool
async def run(command: str) -> str:
    """Run a shell command"""
    return await asyncio.to_thread(run_tool, command)


async def main() -> None:
    """The whole run."""
    model = ChatOpenAI(model="fake", base_url=BASE_URL, api_key="x", streaming=True)
    config = {"configurable": {"thread_id": "t1"}, "recursion_limit": 4 * N + 20}
    async with AsyncSqliteSaver.from_conn_string(os.path.join(WORK, "s.db")) as saver:
        agent = create_agent(model, [run], system_prompt=SYSTEM, checkpointer=saver)
        given = {"messages": [("user", TASK)]}
        async for _ in agent.astream(given, config, stream_mode=["messages", "updates"]):
            pass


asyncio.run(main())
