"""What every view is given: the router, the facts of the process, and how to name things."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fared.api.control import CommandError
from fared.config import Config
from fared.core.ids import Prefix, format_address, format_node, parse_prefix
from fared.core.links import Link
from fared.fib.model import FibState
from fared.ospf.snapshot import OspfSnapshot
from fared.router.router import Router


@dataclass(slots=True)
class Runtime:
    """Facts of the process that no pure room knows. Times are Unix time in seconds."""

    started_at: float
    pid: int
    config_file: str
    loaded_at: float
    last_reload_ok: bool | None = None
    last_reload_error: str | None = None
    event_loop_lag: float = 0.0
    resyncs: Counter[str] = field(default_factory=Counter)
    sysctls: list[dict[str, Any]] = field(default_factory=list)
    utilized: dict[int, float] = field(default_factory=dict)
    """Outbound load by interface index, bytes/s."""
    neighbor_reasons: dict[tuple[int, int], str] = field(default_factory=dict)
    """Why each neighbor (ifindex, router id) last changed its state."""


@dataclass
class ViewContext:
    """One moment of the daemon. ``now`` is on the router's clock, ``wall`` the same in Unix time."""

    router: Router
    config: Config
    runtime: Runtime
    now: float
    wall: float
    log: deque[dict[str, Any]]
    dump: Callable[[], FibState]
    links: Mapping[int, Link]
    counters: Callable[[], dict[str, Mapping[str, int]]]

    def unix(self, at: float) -> float:
        """Turn the router's clock into Unix time."""
        return self.wall - (self.now - at)

    @cached_property
    def hostnames(self) -> dict[int, str]:
        """Dynamic hostnames (RFC 5642) by node id."""
        names: dict[int, str] = {}
        for area in self.router.solver.areas:
            for node, block in self.router.solver.ted(area).blocks.items():
                if block.hostname:
                    names[node] = block.hostname
        return names

    @cached_property
    def ospf(self) -> OspfSnapshot:
        """The engine at this moment."""
        return self.router.engine.snapshot(self.now)

    @property
    def root(self) -> str:
        """This router's id."""
        return format_node(self.router.solver.root)

    def node(self, node: int) -> str:
        """Name a vertex by its id."""
        return format_node(node)

    def find_node(self, text: str) -> int:
        """A node by router id or hostname. Raises CommandError."""
        for node, name in self.hostnames.items():
            if text == name:
                return node
        for area in self.router.solver.areas:
            for node in self.router.solver.ted(area).blocks:
                if format_node(node) == text:
                    return node
        raise CommandError("not-found", f"no router {text!r} in the database")

    def find_route(self, text: str) -> Prefix:
        """A prefix of the table: exactly as written, or the longest match of an address.

        Raises CommandError.
        """
        try:
            wanted = parse_prefix(text)
        except ValueError as error:
            raise CommandError("bad-argument", f"{text!r} is not a prefix: {error}") from None
        routes = self.router.solver.routes
        if wanted in routes:
            return wanted
        if "/" in text:
            raise CommandError("not-found", f"no route to {text}")
        matches = [
            prefix
            for prefix in routes
            if prefix.family == wanted.family and prefix.contains(wanted.network)
        ]
        if not matches:
            raise CommandError("not-found", f"no route to {text}")
        return max(matches, key=lambda prefix: prefix.length)

    @property
    def weights(self) -> str:
        """What the weights follow: none, capacity or available."""
        return str(self.router.settings.solver.mode.value)


def finite(value: float | None) -> float | None:
    """JSON has no infinity and no NaN: both are unknown."""
    return value if value is not None and math.isfinite(value) else None


def gateway(family: int, address: int) -> str | None:
    """A next hop's address, None where it needs none."""
    return format_address(family, address) if address else None
