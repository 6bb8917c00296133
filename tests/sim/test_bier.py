"""BIER in fabrics of both protocols: every set arrives once, after failures, over areas and levels.

Packets take what each router has passed to its kernel: ports, tables and marked copies.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import msgspec
import networkx as nx
import pytest
from msgspec.structs import replace

from fared.core.bier import BierEncapsulation, BierInfo, BierSettings
from fared.core.ids import ipv4_prefix
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, FabricBuilder, clos3, clos5
from fared.extensions.sim.levels import COMMON, clos5_levels
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import IsisBuilder, OspfBuilder
from fared.paths.bier.bit_string import bit_strings
from fared.paths.fib.bier import BierFib
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.extended_prefix import ExtendedPrefixLsa
from fared.protocols.ospf.packet.lsa import LsType
from fared.router import events
from fared.router.bier import BierRouting

pytestmark = pytest.mark.slow

HOSTS = 100
"""BFR-id of the host of the first leaf."""


def with_bier(fabric: Fabric, length: int = 64) -> Fabric:
    """Give every router a BFR-id, and every leaf a host, its tenth address."""
    network = fabric.network
    for number, (name, node) in enumerate(network.nodes.items(), 1):
        hosts: tuple[tuple[int, int], ...] = ()
        if name in fabric.leaf_prefixes:
            at = [*fabric.leaf_prefixes].index(name)
            hosts = ((fabric.leaf_prefixes[name].network + 10, HOSTS + at),)
        bier = BierSettings(1, number, length, hosts)
        parts = {p: replace(part, bier=bier) for p, part in node.settings.protocols.items()}
        node.settings = replace(node.settings, protocols=parts, bier=bier)
    network.start_all()
    network.run_until_quiet(120)
    return fabric


def build(kind: str) -> Fabric:
    builder = IsisBuilder(COMMON) if "isis" in kind else OspfBuilder()
    network = Network(seed=7)
    match kind:
        case "clos5-areas":
            return with_bier(clos5_areas(2, 2, 2, 2, network=network))
        case "clos5-levels-isis":
            return with_bier(clos5_levels(2, 2, 2, 2, network=network))
        case "clos5-ospf":
            return with_bier(clos5(2, 2, 2, 2, network=network))
    return with_bier(clos3(4, 4, builder=FabricBuilder(network, protocols=(builder,))))


KINDS = ["clos3-ospf", "clos3-isis", "clos5-ospf", "clos5-areas", "clos5-levels-isis"]


@pytest.fixture(scope="module", params=KINDS)
def shared(request) -> Fabric:
    return build(request.param)


@pytest.fixture
def fabric(shared: Fabric):
    yield shared
    for a, b in shared.links:
        port = shared.network.find_port(a, b)
        if not port.admin_up:
            shared.network.set_link(a, b, up=True)
    shared.network.run_for(30)


def routing(fabric: Fabric, name: str) -> BierRouting:
    found = fabric.network.nodes[name].running.multicast.bier
    assert found is not None
    return found


def state(fabric: Fabric, name: str) -> BierFib:
    found = routing(fabric, name).planner.installed
    assert found is not None
    assert found == routing(fabric, name).planner.desired
    return found


def deliver(fabric: Fabric, root: str, ids: Iterable[int], entropy: int) -> Counter[int]:
    """Send a packet to BFR-ids as the kernels of all routers would; count the arrivals."""
    arrived: Counter[int] = Counter()
    length = state(fabric, root).length
    strings = bit_strings(ids, length)
    waiting = [(root, "lo", s, string, 64) for s, string in strings.items()]
    while waiting:
        name, came_in, set_id, string, ttl = waiting.pop()
        assert ttl, "loop"
        fib, ports = state(fabric, name), fabric.network.nodes[name].ports
        assert came_in in {port.name for port in fib.ports}, (name, came_in)
        tables = fib.sets[set_id]
        rules = fib.tables[tables[entropy % len(tables)]]
        if string & rules.local:
            arrived[routing(fabric, name).settings.bfr_id] += 1
        left = string & ~rules.local
        for mark in rules.marks:
            neighbor, mask = fib.copies[mark]
            if not string & mask:
                continue
            left &= ~mask
            port = ports[neighbor.ifindex]
            assert port.name == neighbor.interface
            if not neighbor.node:
                hosts = dict(routing(fabric, name).settings.hosts)
                assert bit_strings([hosts[neighbor.address]], length) == {set_id: mask}
                arrived[hosts[neighbor.address]] += 1
                continue
            (far,) = port.far
            assert port.admin_up
            assert far.admin_up
            waiting.append((far.node, far.name, set_id, string & mask, ttl - 1))
        assert not left, (name, set_id, hex(left))
    return arrived


def all_ids(fabric: Fabric) -> dict[int, str]:
    """The router of each BFR-id, that of a host being its leaf."""
    found = dict(enumerate(fabric.network.nodes, 1))
    found.update({HOSTS + n: leaf for n, leaf in enumerate(fabric.leaf_prefixes)})
    return found


def reachable_ids(fabric: Fabric, root: str) -> list[int]:
    """Those with a route: all but where planes that are partitions have none to each other."""
    ids, birt = all_ids(fabric), routing(fabric, root).birt
    found = [i for i, (entry,) in birt.items() if entry.usable]
    partitions = any(len(node.running.solver.areas) > 1 for node in fabric.network.nodes.values())
    for i in ids.keys() - {*found}:
        assert partitions, (i, ids[i], birt.get(i))
        assert i not in birt or birt[i][0].problem == "no route"
        assert "L" not in root or "L" not in ids[i]
    return found


def assert_every_set_arrives(fabric: Fabric, draw: random.Random, packets: int) -> None:
    for _ in range(packets):
        root = draw.choice([*fabric.network.nodes])
        ids = reachable_ids(fabric, root)
        chosen = draw.sample(ids, draw.randint(1, len(ids)))
        assert deliver(fabric, root, chosen, draw.randrange(1 << 20)) == Counter(chosen)


def test_any_router_reaches_any_set_once(fabric: Fabric):
    draw = random.Random(1)
    for root in fabric.network.nodes:
        ids = reachable_ids(fabric, root)
        for entropy in range(16):
            assert deliver(fabric, root, ids, entropy) == Counter(ids)
    assert_every_set_arrives(fabric, draw, 20)


def test_after_each_of_20_random_failures_every_set_still_arrives_once(fabric: Fabric):
    draw = random.Random(5)
    down: list[tuple[str, str]] = []
    for _ in range(20):
        if down and draw.random() < 0.4:
            link = down.pop(draw.randrange(len(down)))
            fabric.network.set_link(*link, up=True)
        else:
            graph = nx.Graph(link for link in fabric.links if link not in down)
            spare = [k for k in fabric.links if k not in down and k not in nx.bridges(graph)]
            link = draw.choice([k for k in spare if not _needed(fabric, [*down, k])] or [None])
            if link is None:
                continue
            fabric.network.set_link(*link, up=False)
            down.append(link)
        fabric.network.run_for(40)
        assert_every_set_arrives(fabric, draw, 10)


def _needed(fabric: Fabric, down: list[tuple[str, str]]) -> bool:
    """Whether unicast loses a router: areas and levels do not repair all that a graph could."""
    if any("L" in a + b for a, b in down) and any("SS" in a + b for a, b in fabric.links):
        return True
    above = [k for k in fabric.links if k not in down and ("SS" in k[0] + k[1])]
    left = above or [k for k in fabric.links if k not in down]
    graph = nx.Graph(left)
    wanted = {name for name in fabric.network.nodes if not above or "L" not in name}
    planes = nx.number_connected_components(graph)
    return {*graph} != wanted or planes != (2 if above else 1)


def test_copies_follow_capacity():
    fabric = build("clos3-ospf")
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    fabric.network.run_for(20)
    ids = {name: n for n, name in all_ids(fabric).items() if n < HOSTS}
    sent: Counter[str] = Counter()
    fib = state(fabric, "L1")
    for entropy in range(16):
        rules = fib.tables[fib.sets[0][entropy % len(fib.sets[0])]]
        for mark in rules.marks:
            neighbor, mask = fib.copies[mark]
            if mask >> ids["L2"] - 1 & 1:
                sent[neighbor.interface] += 1
    assert sent == Counter(S1=1, S2=5, S3=5, S4=5)


def test_a_border_router_copies_the_sub_tlv_into_one_tlv_with_the_path_capacity():
    fabric = build("clos5-areas")
    spine = fabric.network.nodes["p1.S1"].running.instances["ospf"].engine
    ospf = spine.instance
    leaf = ipv4_prefix(fabric.router_ids["p1.L1"], 32)
    found = [
        facts
        for entry in ospf.areas[0].lsdb
        if entry.key.ls_type == LsType.OPAQUE_AREA
        and entry.key.advertising_router == fabric.router_ids["p1.S1"]
        and isinstance(body := decode_body(entry.lsa), ExtendedPrefixLsa)
        for facts in body.prefixes
        if facts.prefix == leaf
    ]
    (facts,) = found
    assert (facts.route_type, facts.flags) == (3, 0x40)
    assert [kind for kind, _ in facts.sub_tlvs] == [32768, 9]


def test_a_bfr_id_that_two_routers_claim_is_used_for_neither_and_logged():
    fabric = build("clos3-isis")
    network = fabric.network
    settings = network.nodes["L1"].settings
    bier = replace(settings.bier, bfr_id=state_id(fabric, "L2"))
    parts = {p: replace(part, bier=bier) for p, part in settings.protocols.items()}
    changed = replace(settings, protocols=parts, bier=bier)
    network.input("L1", events.RouterSettingsApplied(changed))
    network.run_for(20)
    entries = routing(fabric, "S1").birt[bier.bfr_id]
    assert len(entries) == 2
    assert all("BFR-id also of" in entry.problem for entry in entries)
    network.input("L1", events.RouterSettingsApplied(settings))
    network.run_for(20)
    assert_every_set_arrives(fabric, random.Random(3), 10)


def state_id(fabric: Fabric, name: str) -> int:
    return routing(fabric, name).settings.bfr_id


class MeansMpls(BierSettings, frozen=True):
    """Advertises a label of its own, as freeRtr does."""

    def info(self, bfr_id: int) -> BierInfo:
        return replace(super().info(bfr_id), encapsulations=(BierEncapsulation(1, 0x18F70, 1),))


def mean_mpls(fabric: Fabric, names: Iterable[str]) -> None:
    for name in names:
        settings = fabric.network.nodes[name].settings
        bier = MeansMpls(**msgspec.structs.asdict(settings.bier))
        parts = {p: replace(part, bier=bier) for p, part in settings.protocols.items()}
        changed = replace(settings, protocols=parts, bier=bier)
        fabric.network.input(name, events.RouterSettingsApplied(changed))
    fabric.network.run_for(20)


@pytest.mark.parametrize("kind", ["clos3-ospf", "clos3-isis"])
def test_a_router_that_means_mpls_is_named_at_its_neighbors_and_gets_no_packets(kind):
    fabric = build(kind)
    mean_mpls(fabric, ["S1"])
    told = "it means MPLS (label 102256), this router sends BIER without MPLS"
    here = routing(fabric, "L1")
    assert {n.interface: why for n, why in here.refused.items()} == {"S1": told}
    fib = state(fabric, "L1")
    used = {fib.copies[mark].neighbor for table in fib.tables for mark in table.marks}
    assert {neighbor.interface for neighbor in used} == {"S2", "S3", "S4", "host"}
    leaves = [i for i, name in all_ids(fabric).items() if name.startswith("L")]
    for entropy in range(16):
        assert deliver(fabric, "L1", leaves, entropy) == Counter(leaves)
    mean_mpls(fabric, ["S2", "S3", "S4"])
    entries = [e for (e,) in routing(fabric, "L1").birt.values() if not e.usable]
    assert {e.problem for e in entries} == {told, f"next hop: {told}"}


def test_a_host_is_withdrawn_with_its_link():
    fabric = build("clos3-ospf")
    network = fabric.network
    port = next(p for p in network.nodes["L1"].ports.values() if p.name == "host")
    port.admin_up = False
    network._notify(port)
    network.run_for(20)
    assert HOSTS not in {i for i, e in routing(fabric, "S1").birt.items() if e[0].usable}
    (here,) = routing(fabric, "L1").birt[HOSTS]
    assert here.problem == "no interface with its subnet is up"


def test_a_bfr_id_beyond_the_sets_of_a_bift_id_is_not_programmed():
    """With bit strings of 64 that is a BFR-id above 16384; nothing of others is disturbed."""
    fabric = build("clos3-ospf")
    network = fabric.network
    settings = network.nodes["L1"].settings
    bier = replace(settings.bier, bfr_id=256 * 64 + 1)
    parts = {p: replace(part, bier=bier) for p, part in settings.protocols.items()}
    network.input("L1", events.RouterSettingsApplied(replace(settings, protocols=parts, bier=bier)))
    network.run_for(20)
    (entry,) = routing(fabric, "S1").birt[256 * 64 + 1]
    assert entry.problem == "above 256 sets of 64"
    assert max(state(fabric, "S1").sets) < 256
