"""OSPF and IS-IS between the same two routers: preference decides, one route in the kernel."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.daemons import LINKS, RIGHT_STUB, Json, Live
from tests.live.isis_daemons import RIGHT_STUB6, IsisPair, isis_section
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

OSPF, ISIS = {"u0"}, {"u1"}
"""The link that each protocol likes better."""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[IsisPair]:
    """OSPF finds the first link cheaper, IS-IS the second."""
    made = IsisPair("b", tmp_path, ospf=True)
    try:
        for daemon in (made.left, made.right):
            daemon.config["ospf"]["areas"]["0.0.0.0"]["interfaces"]["u1"]["cost"] = 20
            system_id = daemon.config["isis"]["net"][8:22]
            daemon.config["isis"] = isis_section(system_id, u0=20, u1=10)
        made.left.start()
        made.right.start()
        for daemon in (made.left, made.right):
            wait_for(lambda d=daemon: d.full() >= len(LINKS), 40, "OSPF is Full")
            wait_for(daemon.settled, 40, "the kernel holds what was computed")
        yield made
    finally:
        made.close()


def changed(daemon: Live, *, preference: int = 115, without: str | None = None) -> Json:
    """Its configuration with another preference of IS-IS, or without the stub in a protocol."""
    config = copy.deepcopy(daemon.config)
    config["isis"]["preference"] = preference
    if without == "ospf":
        del config["ospf"]["areas"]["0.0.0.0"]["interfaces"]["d0"]
    elif without == "isis":
        del config["isis"]["interfaces"]["d0"]
    return config


def await_winner(pair: IsisPair, link: set[str]) -> None:
    """Wait until the kernel's only route to the stub network uses this link."""
    wait_for(lambda: pair.used(RIGHT_STUB) == link, 40, f"a route over {link}")
    assert len(pair.left.netns.ip("route", "show", RIGHT_STUB).splitlines()) == 1
    # Only IS-IS routes IPv6, and its adjacencies may come up after those of OSPF.
    wait_for(lambda: pair.used(RIGHT_STUB6) == ISIS, 40, "the IPv6 route of IS-IS")
    wait_for(pair.left.settled, 40, "the kernel holds what was computed")


def test_the_preferred_protocol_provides_the_routes_and_the_other_replaces_it(pair: IsisPair):
    """110 before 115; 100 before 110; what one withdraws, the other still has."""
    await_winner(pair, OSPF)
    pair.left.reload(changed(pair.left, preference=100))
    await_winner(pair, ISIS)
    pair.right.reload(changed(pair.right, without="isis"))
    wait_for(lambda: pair.used(RIGHT_STUB) == OSPF, 40, "OSPF still has it")
    pair.right.reload(pair.right.config)
    await_winner(pair, ISIS)
    pair.left.reload(pair.left.config)
    await_winner(pair, OSPF)
    pair.right.reload(changed(pair.right, without="ospf"))
    await_winner(pair, ISIS)
    assert pair.left.complaints() == []
    assert pair.right.complaints() == []
