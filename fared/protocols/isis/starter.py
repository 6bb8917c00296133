"""A router that starts without knowing of a former life (RFC 8706 §3.2.2, §3.4.2).

It asks its neighbors (SA in its hellos) not to advertise their adjacencies with it until its
database is complete, T2 at most: before, it would drop the traffic that they send through it. A
router that restarts gracefully keeps its routes, and asks for the opposite (``restarter``).
"""

from __future__ import annotations

from collections.abc import Callable

from fared.protocols.isis.adjacency.hello import HelloProtocol
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.restarter import T2


class Starter:
    """Clears SA once the database is complete.

    ``progress`` returns the circuits that could have a neighbor, those that have, and the neighbors
    whose database has not arrived.
    """

    def __init__(
        self,
        instance: Instance,
        hello: HelloProtocol,
        progress: Callable[[], tuple[int, int, int]],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._hello = hello
        self._progress = progress
        self._begun: float | None = None
        instance.starting = instance.settings.suppress_adjacency

    def settle(self) -> None:
        """Begin, and end once all neighbors that there are have sent their databases."""
        if not self._instance.starting:
            return
        if self._begun is None:
            self._begun = self._process.now
            self._process.timers.arm(self._begun + T2, self._expired)
        _, having, forming = self._progress()
        if having and not forming:
            self._end("completed")

    def _expired(self) -> None:
        if self._instance.starting:
            self._end("not-synchronized")

    def _end(self, result: str) -> None:
        self._instance.starting = False
        seconds = self._process.now - (self._begun or 0.0)
        self._process.log(
            "info", "suppress-adjacency-ended", result=result, seconds=round(seconds, 3)
        )
        self._hello.announce_restart()
