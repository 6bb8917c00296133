"""Waiting for a condition with a deadline: tests use this instead of sleeping."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

_SHORTEST, _LONGEST, _PART = 0.002, 0.05, 0.1

Explained = str | Callable[[], str]
"""What is waited for; a function is asked when it did not come true."""


def wait_for(
    condition: Callable[[], Any], seconds: float, what: Explained, *, pause: float | None = None
) -> Any:
    """Return the value of the condition once it is true; fail at the deadline.

    The interval between checks is a tenth of the time waited so far, at most 50 ms, or ``pause``:
    frequent checks would take CPU time from the daemons.
    """
    for nap in _naps(seconds, what, pause):
        if found := condition():
            return found
        time.sleep(nap)
    raise AssertionError("unreachable")


def seconds_until(
    condition: Callable[[], Any], seconds: float, what: Explained, *, pause: float | None = None
) -> float:
    """Wait for a condition; return the seconds that this took."""
    begun = time.monotonic()
    wait_for(condition, seconds, what, pause=pause)
    return time.monotonic() - begun


def await_rest(
    observe: Callable[[], object], quiet: float, within: float, what: str, pause: float = 0.2
) -> None:
    """Wait until ``observe`` has returned the same for ``quiet`` seconds."""
    seen: list[object] = []
    changed = time.monotonic()

    def rested() -> bool:
        nonlocal changed
        now = observe()
        if seen != [now]:
            seen[:], changed = [now], time.monotonic()
        return time.monotonic() - changed > quiet

    wait_for(rested, within, what, pause=pause)


async def loop_until(
    condition: Callable[[], Any], seconds: float = 30.0, what: Explained = "a condition"
) -> None:
    """Run the event loop until a condition is true."""
    for _ in _naps(seconds, what, None):
        if condition():
            return
        await asyncio.sleep(0.001)


def _naps(seconds: float, what: Explained, pause: float | None) -> Iterator[float]:
    """Yield the sleep after each check; the condition is checked once more after the deadline."""
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < seconds:
        yield pause or min(_LONGEST, max(_SHORTEST, passed * _PART), seconds - passed)
    yield 0.0
    text = what if isinstance(what, str) else what()
    raise AssertionError(f"not within {seconds:g} s: {text}")
