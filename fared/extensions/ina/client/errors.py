"""Why an all-reduce has no result. All of them name ranks where that is known."""

from __future__ import annotations

from collections.abc import Iterable


class InaError(Exception):
    """The base of all."""


class JoinError(InaError):
    """No router accepted this worker; the text tells why."""


class WorkerLost(InaError):  # noqa: N818 - reads as the condition it is
    """Workers ended without leaving; the job has failed. ``ranks`` are theirs.

    In an elastic job it is this worker itself: the others go on without it.
    """

    def __init__(self, ranks: Iterable[int]) -> None:
        self.ranks = tuple(sorted(ranks))
        super().__init__(f"lost: {_told(self.ranks)}")


class JobEnded(InaError):  # noqa: N818
    """An operator removed the job, or too few workers of an elastic one are left."""


class CallTimeout(InaError):  # noqa: N818
    """Nothing arrived for the whole timeout. ``missing`` are ranks that a router waits for."""

    def __init__(self, seconds: float, missing: Iterable[int]) -> None:
        self.missing = tuple(sorted(missing))
        waits = f"routers wait for {_told(self.missing)}" if self.missing else "no router answers"
        super().__init__(f"no result for {seconds:g} s: {waits}")


def _told(ranks: tuple[int, ...]) -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))
