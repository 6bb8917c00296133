"""A session, the planner that it follows, and the double of ``fpmsyncd``, with bytes in between.

A lost connection loses what is on the way, so that the double may have processed any beginning of
what the session sent.
"""

from __future__ import annotations

import random

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, format_address
from fared.fpm.encode import scaled
from fared.fpm.session import PATIENCE, FpmSession
from fared.paths.fib.simulated import SimulatedFib
from tests.fib.helpers import Bench
from tests.fpm.fpmsyncd import Connection, Fpmsyncd

PROTOCOL = 188
METRICS = {FAMILY_IPV4: 20, FAMILY_IPV6: 20}
NAMES = {number: f"Ethernet{4 * number}" for number in range(1, 7)}
PORTION = 400


class Switch(Bench):
    """``names`` are the interfaces of both sides; ``wire`` is on the way to the double."""

    def __init__(self, *, suppress: bool = False, buffer: int = 1 << 17, **options) -> None:
        super().__init__(**options)
        self.names = dict(NAMES)
        self.peer = Fpmsyncd(self.names, {PROTOCOL: "ospf"}, suppress=suppress, buffer=buffer)
        self.client: Connection | None = None
        self.wire = b""
        self.session = self.new_session()

    def new_session(self) -> FpmSession:
        return FpmSession(
            PROTOCOL, METRICS, wanted=lambda: self.planner.installed, names=self.names.get
        )

    def connect(self) -> None:
        self.client = self.peer.connect()
        self.session.connected(self.now)

    def lose_connection(self, chance: random.Random) -> None:
        """Lose it, with a random part of what is on the way."""
        assert self.client is not None
        self.peer.send(self.client, self.wire[: chance.randint(0, len(self.wire))])
        self.peer.close(self.client)
        self.client, self.wire = None, b""
        self.session.lost()

    def write(self, size: int = PORTION) -> None:
        """Put a portion on the way."""
        self.session.touch(self.planner.take_touched())
        self.wire += self.session.writable(size, self.now)

    def deliver(self) -> None:
        """Deliver what is on the way, and the answers to it."""
        if self.client is None:
            return
        self.peer.send(self.client, self.wire)
        self.wire = b""
        assert self.session.received(self.client.read(), self.now) == ""
        self.peer.run()

    def settle(self) -> None:
        """Exchange until nothing is left."""
        if self.client is None:
            self.connect()
        self.session.touch(self.planner.take_touched())
        while self.session.has_output() or self.wire or self.client.unread or self.client.incoming:
            self.write()
            self.deliver()

    def succeed(self) -> None:
        """Let orchagent succeed with all rows: with suppression only that is acknowledged."""
        for prefix in self.session.rows.announced:
            self.peer.succeed(PROTOCOL, str(prefix))
        self.settle()
        for _ in range(2):  # one was on its way to be looked at
            self.now += PATIENCE
            assert self.session.tick(self.now) == ""

    def expected(self) -> dict[str, dict[str, str]]:
        """The rows that the groups of the planner's kernel make."""
        return {str(prefix): row(self.kernel, prefix) for prefix in self.kernel.state.routes}


def row(kernel: SimulatedFib, prefix) -> dict[str, str]:
    path = kernel.path(prefix)
    assert path is not None
    found = list(path.items())
    if len(found) == 1:
        found = [(found[0][0], 1)]
    if not found[0][0][0]:
        return {"blackhole": "true", "protocol": "ospf"}
    return {
        "nexthop": ",".join(
            [format_address(family, gateway) for (_, family, gateway, _), _ in found]
        ),
        "ifname": ",".join([NAMES[hop[0]] for hop, _ in found]),
        "weight": ",".join(map(str, scaled([weight for _, weight in found]))),
        "protocol": "ospf",
    }


def in_order(rows: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Sort the next hops of rows: their order is that of ids, which is no part of a row's sense."""
    return {key: _sorted(fields) for key, fields in rows.items()}


def _sorted(fields: dict[str, str]) -> dict[str, str]:
    if "nexthop" not in fields:
        return fields
    names = ("ifname", "nexthop", "weight")
    columns = sorted(zip(*(fields[name].split(",") for name in names), strict=True))
    return {**fields, **dict(zip(names, map(",".join, zip(*columns, strict=True)), strict=True))}
