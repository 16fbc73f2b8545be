"""pydantic-ai: its agent with streamed chat completions, nothing durable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from typing import Any

from common import BASE_URL, SYSTEM, TASK, run_tool
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

agent = Agent(
    OpenAIChatModel("fake", provider=OpenAIProvider(base_url=BASE_URL, api_key="x")), instructions=SYSTEM, name="a"
)


@agent.tool_plain
async def run(command: str) -> str:
    """Run a shell command"""
    return await asyncio.to_thread(run_tool, command)


async def handler(_context: Any, events: AsyncIterable[Any]) -> None:
    """One listener, as a user interface would be."""
    async for _ in events:
        pass


async def main() -> None:
    """The whole run."""
    limits = UsageLimits(request_limit=None)
    result = await agent.run(TASK, event_stream_handler=handler, usage_limits=limits)
    assert result.output


asyncio.run(main())
