"""What changes in a real Redis becomes weights in the kernel, by two real daemons.

The left one has SONiC's databases: its link ``u0`` is a port there, ``u1`` a LAG of two ports.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.live import daemons
from tests.live.daemons import LEFT, RIGHT_STUB, Pair, running_pair
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns]

SOON = 20.0
MBIT = 125_000


def weights(pair: Pair) -> float:
    """The weight of ``u1`` as a multiple of that of ``u0``; 0: not both are used."""
    found = {hop.interface: hop.weight for hop in pair.view.hops(RIGHT_STUB)}
    return found["u1"] / found["u0"] if len(found) > 1 else 0


class Traffic:
    """Counters of a port that grow with time."""

    def __init__(self, server: Any, port: str, mbit: int) -> None:
        self._server, self._port, self._rate = server, port, mbit * MBIT
        self._begin = time.monotonic()
        self.write()

    def write(self) -> bool:
        octets = int(self._rate * (time.monotonic() - self._begin))
        self._server.counters(self._port, OUT_OCTETS=octets, IN_UCAST_PKTS=0)
        return True


@pytest.mark.parametrize(
    "server",
    [pytest.param("", marks=pytest.mark.soak, id="polled"), pytest.param("KEA", id="notified")],
    indirect=True,
)
def test_speed_members_and_load_become_weights_in_their_order(server, tmp_path, request):
    def configure(identity: str, hostname: str) -> dict[str, Any]:
        config = daemons._config(identity, hostname)
        config["adaptive"] = {"metric": "available", "time-constant": "0s"}
        if identity == LEFT:
            config["platform"] = {"kind": "sonic", "databases": str(server.file)}
        return config

    def reached(expected: float, what: str, *also: Traffic) -> None:
        def seen() -> bool:
            for traffic in also:
                traffic.write()
            return weights(pair) == pytest.approx(expected, rel=0.08)

        begin = time.monotonic()
        wait_for(seen, SOON, f"{what}: {expected}, not {weights(pair)}")
        request.node.user_properties.append((what, round(time.monotonic() - begin, 2)))

    server.port("u0", 100_000)
    for member in ("Ethernet8", "Ethernet12"):
        server.port(member, 100_000)
    server.lag("u1", "Ethernet8", "Ethernet12")
    idle = [Traffic(server, port, 0) for port in ("u0", "Ethernet8", "Ethernet12")]
    with running_pair("s", tmp_path / "pair", configure) as pair:
        reached(2, "speeds at the start", *idle)
        server.set("STATE_DB", "PORT_TABLE|u0", speed=50_000)
        reached(4, "a slower port", *idle)
        server.member("u1", "Ethernet8", "disabled")
        reached(2, "a member less", *idle)
        loaded = Traffic(server, "u0", 25_000)
        reached(4, "half of the port is used", loaded, *idle[1:])
        server.member("u1", "Ethernet8", "enabled")
        reached(8, "the member is back", loaded, *idle[1:])
        server.set("APPL_DB", "PORT_TABLE:u0", oper_status="down")
        wait_for(lambda: pair.used() == {"u1"}, SOON, "a port that is down is not used")
        assert pair.left.complaints() == []
