"""openai-agents: streamed chat completions, one function tool, its SQLite session."""

from __future__ import annotations

import asyncio
import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
from common import BASE_URL, SYSTEM, TASK, WORK, N, run_tool
from openai import AsyncOpenAI


@function_tool
async def run(command: str) -> str:
    """Run a shell command"""
    return await asyncio.to_thread(run_tool, command)


async def main() -> None:
    """The whole run."""
    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel(model="fake", openai_client=AsyncOpenAI(base_url=BASE_URL, api_key="x"))
    agent = Agent(name="A", instructions=SYSTEM, tools=[run], model=model)
    session = SQLiteSession("s1", os.path.join(WORK, "s.db"))
    result = Runner.run_streamed(agent, TASK, session=session, max_turns=N + 5)
    async for _ in result.stream_events():
        pass
    assert result.final_output


asyncio.run(main())
