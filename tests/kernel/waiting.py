"""Waiting for a condition instead of sleeping."""

import asyncio
import time


async def until(condition, seconds: float = 10.0) -> None:
    """Let the loop run until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.001)
