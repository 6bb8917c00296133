"""What FRR and BIRD need after faults of their own: done as their operator would, and told.

Both faults are of the versions in Debian 12 and come with any neighbor (docs/ospf.md,
docs/configuring.md). A ledger without them would show what fared does; the entry says what was
done.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fared.extensions.lab.fabric import Fabric, RunningNode

PATIENCE = 15.0
"""Seconds for which BIRD may repair its routes by itself; it originates once in five."""
_SEGFAULT = "Received signal 11"
_NO_NEXT_HOP = "Cannot find next hop for LSA"
_RELOAD = ("reload", "fabric")


class Peers:
    """The routers of FRR and BIRD of a fabric."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._read: dict[str, int] = {}
        self._done: list[str] = []

    def fault(self) -> None:
        """A fault begins: what logs say from now on may be its effect."""
        self._read = {name: len(_log(node)) for name, node in self._nodes("bird")}

    def done(self) -> str:
        """Return what was done since the last call, for an entry."""
        done, self._done = self._done, []
        return f" ({', '.join(done)})" if done else ""

    def look(self, wrong: float) -> None:
        """Look at all of them; something has been wrong for so many seconds."""
        self._revive()
        if wrong > PATIENCE:
            self._compute()

    def _revive(self) -> None:
        """Start a router of FRR again that crashed, as its watchdog does.

        ospfd 8.4 does when a link goes down and up within a minute after a neighbor's graceful
        restart: it then still has the grace LSA, and no interface for it.
        """
        for name, node in self._nodes("frr"):
            if all(process.alive() for process in node.processes) or _SEGFAULT not in _log(node):
                continue
            self._done.append(f"{name} crashed")
            self._fabric.stop_node(name, kill=True)
            self._fabric.start_node(name)

    def _compute(self) -> None:
        """Let BIRD compute its routes again, if it lacks a next hop, once a fault.

        BIRD 2.0.12 does not where a link is back before it has originated its router LSA without.
        """
        for name, node in self._nodes("bird"):
            log, read = _log(node), self._read.get(name, 0)
            if _NO_NEXT_HOP not in log[read:]:
                continue
            self._read[name] = len(log)
            self._done.append(f"{name} lacked a next hop")
            node.call(node.kind.cli(node.directory, _RELOAD))

    def _nodes(self, kind: str) -> Iterator[tuple[str, RunningNode]]:
        for router in self._fabric.plan.routers:
            if router.node.kind == kind:
                yield router.name, self._fabric.node(router.name)


def _log(node: RunningNode) -> str:
    directory: Path = node.directory
    return "".join(log.read_text("utf-8", "replace") for log in sorted(directory.glob("*.log")))
