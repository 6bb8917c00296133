"""What changes in a real Redis is what the daemon knows, soon."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pyroute2.netlink.rtnl import RTM_NEWLINK

from fared.core.link_facts import PlatformLink
from fared.kernel.linktable import LinkTable
from fared.kernel.netlink import attribute, u32_attribute
from fared.sonic.platform import SonicPlatform
from tests.waiting import wait_for

G = 1e9 / 8
UP = 0x1 | 0x40 | 0x10000
BOTH = pytest.mark.parametrize("server", ["", "KEA"], indirect=True, ids=["polled", "notified"])


class Known:
    """A platform on a real Redis, and what it told so far."""

    def __init__(self, server: Any) -> None:
        self.events: list[str] = []
        log = SimpleNamespace(
            info=lambda event, **_: self.events.append(event),
            warning=lambda event, **_: self.events.append(event),
        )
        self.platform = SonicPlatform(server.databases, log, lambda **_: None)
        self.table = LinkTable(self.platform.link)
        self._told = asyncio.Event()
        for index, name in enumerate((b"Ethernet0", b"Ethernet4", b"PortChannel1"), 1):
            head = struct.pack("=BBHiII", 0, 0, 1, index, UP, 0)
            body = head + attribute(3, name + b"\0") + u32_attribute(4, 9100)
            self.table.take(RTM_NEWLINK, body)

    def changed(self) -> None:
        self.table.rebuild()
        self._told.set()

    def speed(self, name: str) -> float | None:
        return next(link.speed for link in self.table.links.values() if link.name == name)

    def up(self, name: str) -> bool:
        return next(link.up for link in self.table.links.values() if link.name == name)

    async def until(self, condition: Callable[[], Any], what: str) -> None:
        await asyncio.to_thread(wait_for, condition, 60, what)


@contextlib.asynccontextmanager
async def known(server: Any) -> AsyncIterator[Known]:
    made = Known(server)
    await made.platform.start(made.changed)
    try:
        async with asyncio.timeout(60):
            await made.platform.reader.ready.wait()
        made.changed()
        yield made
    finally:
        made.platform.stop()


def switch(server: Any) -> None:
    server.port("Ethernet0", 100_000)
    server.port("Ethernet4", 400_000)
    server.lag("PortChannel1", "Ethernet0", "Ethernet4", min_links=1)


@BOTH
async def test_speeds_and_members_of_a_lag_follow_redis(server):
    switch(server)
    async with known(server) as here:
        assert here.platform.reader.notified is (server._notify == "KEA")
        assert here.speed("Ethernet0") == 100 * G
        assert here.speed("PortChannel1") == 500 * G
        server.set("STATE_DB", "PORT_TABLE|Ethernet0", speed=25_000)
        await here.until(lambda: here.speed("Ethernet0") == 25 * G, "autonegotiated")
        assert here.speed("PortChannel1") == 425 * G
        server.member("PortChannel1", "Ethernet4", "disabled")
        await here.until(lambda: here.speed("PortChannel1") == 25 * G, "a member less")
        assert here.platform.link("PortChannel1").members == (1, 2)
        server.set("CONFIG_DB", "PORTCHANNEL|PortChannel1", min_links=2)
        await here.until(lambda: not here.up("PortChannel1"), "below min-links")
        server.member("PortChannel1", "Ethernet4", "enabled")
        await here.until(lambda: here.up("PortChannel1"), "enough links again")
        assert here.speed("PortChannel1") == 425 * G
        server.set("APPL_DB", "PORT_TABLE:Ethernet0", oper_status="down")
        await here.until(lambda: not here.up("Ethernet0"), "no carrier")


async def test_loads_and_errors_are_those_of_the_chip(server):
    switch(server)
    for port in ("Ethernet0", "Ethernet4"):
        server.counters(port, OUT_OCTETS=1000, IN_UCAST_PKTS=50, IN_ERRORS=1)
    async with known(server) as here:
        platform = here.platform
        assert platform.counts("Ethernet0")
        assert platform.counts("PortChannel1")
        assert not platform.counts("eth0")
        assert platform.load("Ethernet0") is None
        for port in ("Ethernet0", "Ethernet4"):
            server.counters(port, OUT_OCTETS=5_000_001_000, IN_UCAST_PKTS=150, IN_ERRORS=7)
        await here.until(lambda: platform.load("PortChannel1"), "both members have moved")
        port, lag = platform.load("Ethernet0"), platform.load("PortChannel1")
        assert 0 < port.rate < lag.rate
        assert platform.errors("Ethernet0", drops=False, fec=False) == (150, 7)
        # what was counted before the LAG was known is not its own
        assert platform.errors("PortChannel1", drops=False, fec=False) == (200, 12)


async def test_without_redis_the_last_facts_stay_it_is_said_once_and_read_again(server):
    switch(server)
    async with known(server) as here:
        server.stop()
        await here.until(lambda: here.platform.error, "the loss is noticed")
        assert here.speed("Ethernet0") == 100 * G
        server.start()
        server.port("Ethernet0", 10_000)
        await here.until(lambda: here.speed("Ethernet0") == 10 * G, "read again")
        await here.until(lambda: here.platform.error is None, "said")
        assert here.events == ["sonic-not-read", "sonic-read-again"]
        assert here.platform.failures == 1


async def test_an_interface_in_a_vrf_and_a_vlan_on_a_port(server):
    switch(server)
    server.set("CONFIG_DB", "INTERFACE|Ethernet0", vrf_name="VrfRed")
    server.set("CONFIG_DB", "INTERFACE|Ethernet0|10.0.0.0/31", NULL="NULL")
    async with known(server) as here:
        assert here.platform.link("Ethernet0").vrf == "VrfRed"
        assert here.platform.link("Ethernet4.10").speed == 400 * G
        assert here.platform.link("Vlan10") is None
        for name in ("eth0", "eth0.10", "docker0", "eth1-midplane"):
            assert here.platform.link(name) == PlatformLink(management=True)


async def test_values_that_are_none_of_theirs_are_counted_and_the_kernel_knows_instead(server):
    server.port("Ethernet0", 100_000)
    server.set("CONFIG_DB", "PORT|Ethernet4", speed="fast")
    server.set("COUNTERS_DB", "COUNTERS_PORT_NAME_MAP", Ethernet0="oid:1", Ethernet4="oid:2")
    with server.db("COUNTERS_DB") as client:
        client.set("COUNTERS:oid:1", "no hash")
        client.hset("COUNTERS:oid:2", mapping={"SAI_PORT_STAT_IF_OUT_OCTETS": "-1"})
    with server.db("APPL_DB") as client:
        client.set("PORT_TABLE:Ethernet4", "no hash")
    async with known(server) as here:
        assert here.platform.link("Ethernet0") == PlatformLink(speed=100 * G)
        assert here.platform.link("Ethernet4") == PlatformLink()
        assert not here.platform.counts("Ethernet0")
        wrong = here.platform.reader.values.wrong
        assert wrong["not-a-number"] >= 2
        assert wrong["no-counters"] >= 2
        told = here.platform.wrong_values()
        assert told == {
            r: wrong[r] for r in ("not-a-number", "not-a-word", "not-a-name", "too-many")
        }
        assert here.platform.error is None
