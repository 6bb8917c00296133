"""Work, measured so that neither the speed of the machine nor its load matters."""

from __future__ import annotations

import cProfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ATTEMPTS = 5


class Calls:
    """How many functions a block entered, those of C among them: the same on every machine."""

    def __init__(self, profile: cProfile.Profile) -> None:
        self._profile = profile

    @property
    def count(self) -> int:
        """All calls, after the block."""
        return sum(row.callcount for row in self._profile.getstats())


@contextmanager
def counting_calls() -> Iterator[Calls]:
    """Count the calls of a block in this thread."""
    with cProfile.Profile() as profile:
        yield Calls(profile)


def takes_at_most(times: float, long: Callable[[], float], measure: Callable[[], float]) -> bool:
    """Whether one thing takes at most so many times the seconds of another one.

    Both are measured in the same moment, and again if it took longer: what is too slow is so each
    time, but other programs do not always come between.
    """
    return any(long() <= times * measure() for _ in range(_ATTEMPTS))


def grows_in_proportion(
    seconds: Callable[[int], float], few: int, many: int, *, slack: float = 2.0
) -> bool:
    """Whether time grows at most ``slack`` times as much as the size does."""
    return takes_at_most(slack * many / few, lambda: seconds(many), lambda: seconds(few))
