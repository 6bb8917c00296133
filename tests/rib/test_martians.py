"""Martians: they become routes of no router, for any advertising router."""

from __future__ import annotations

import pytest

from fared.core.ids import parse_prefix
from fared.core.links import InterfaceAddress
from fared.core.routes import is_martian, redistributable
from fared.extensions.sim.fabric import FabricBuilder
from fared.extensions.sim.levels import COMMON
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import IsisBuilder, OspfBuilder
from fared.paths.ted.model import PathType, PrefixReachability
from tests.ted.fabrics import AREA, Fabric

MARTIANS = [
    "0.0.0.0/8",
    "0.0.0.0/32",
    "0.128.0.0/9",
    "0.1.0.0/16",
    "127.0.0.0/8",
    "127.0.0.1/32",
    "224.0.0.0/3",
    "224.0.0.0/4",
    "239.1.0.0/16",
    "240.0.0.0/4",
    "250.1.2.0/24",
    "255.255.255.255/32",
    "::/128",
    "::1/128",
    "fe80::/10",
    "fe80::1/128",
    "ff00::/8",
    "ff02::/16",
]
ROUTABLE = [
    "0.0.0.0/0",
    "0.0.0.0/1",
    "1.0.0.0/8",
    "126.0.0.0/7",
    "128.0.0.0/1",
    "169.254.0.0/16",
    "192.0.0.0/2",
    "223.255.255.0/24",
    "::/0",
    "::/96",
    "2001:db8::/32",
    "fc00::/7",
    "fe00::/9",
    "fe80::/9",
    "fec0::/10",
]


@pytest.mark.parametrize("text", MARTIANS)
def test_a_martian_holds_nothing_that_is_forwarded_to_and_is_not_redistributed_either(text):
    assert is_martian(parse_prefix(text))
    assert not redistributable(parse_prefix(text))


@pytest.mark.parametrize("text", ROUTABLE)
def test_default_routes_and_prefixes_that_hold_other_addresses_too_are_no_martians(text):
    assert not is_martian(parse_prefix(text))


def test_martians_are_counted_told_once_and_become_no_route():
    """A default route beside them does; no martian is advertised to other areas."""
    fabric = Fabric()
    fabric.connect("A", "B")
    good = {fabric.prefix("A"), fabric.prefix("B"), parse_prefix("0.0.0.0/0")}
    bad = tuple(parse_prefix(text) for text in MARTIANS if ":" not in text)
    for prefix in (*bad, parse_prefix("0.0.0.0/0")):
        fabric.prefixes["B"].append(PrefixReachability(prefix, 1, PathType.INTRA_AREA))
    solver = fabric.solver("A")
    solver.solve()
    assert solver.routes.keys() == good
    assert solver.take_advertisements()[0].keys() == good
    assert solver.martians.count == len(bad)
    assert [(news.node, news.prefixes) for news in solver.martians.take_new()] == [
        (fabric.id("B"), bad)
    ]
    solver.put_block(AREA, fabric.id("B"), fabric.block("B"))
    assert solver.martians.take_new() == []
    solver.put_block(AREA, fabric.id("B"), None)
    assert solver.martians.count == 0


@pytest.mark.parametrize("protocol", ["ospf", "isis"])
def test_martians_of_a_neighbor_are_not_installed_in_any_kernel(protocol):
    """Of either protocol and family; the log names who announces them."""
    speaker = {"ospf": OspfBuilder(), "isis": IsisBuilder(COMMON)}[protocol]
    builder = FabricBuilder(Network(seed=1), protocols=[speaker])
    for name in ("A", "B"):
        builder.router(name)
    builder.link("A", "B")
    builder.hosts("B")
    fabric, network = builder.fabric, builder.fabric.network
    host = network.nodes["B"].ports[max(network.nodes["B"].ports)]
    odd6 = InterfaceAddress(6, 0xFF02 << 112 | 1, 64)
    network.add_port("B", 240 << 24 | 1, 24, host.settings, interface="odd", global6=odd6)
    network.start_all()
    network.run_until_quiet(60)
    node = network.nodes["A"]
    known = node.kernel.dump().routes
    assert fabric.leaf_prefixes["B"] in known
    assert [str(prefix) for prefix in known if is_martian(prefix)] == []
    said = [r.fields for r in node.logs if r.event == "martian-prefixes-ignored"]
    assert {fields["prefix"] for fields in said} <= {"240.0.0.0/24", "ff02::/64"}
    assert said
    assert all(fields["proto"] == protocol and fields["count"] == 1 for fields in said)
    assert node.running.instances[protocol].martians == (1 if protocol == "ospf" else 2)
