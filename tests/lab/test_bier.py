"""BIER through fabrics of daemons: any set, after failures; collectives that routers copy."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from fared.core.bier import LENGTHS
from fared.extensions.lab import topology
from fared.extensions.lab.addressing import SUB_DOMAIN, make_plan
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.multicast import bound, run_bier
from fared.extensions.lab.workloads.jobs import ALL_GATHER_BIER, BROADCAST_BIER
from fared.kernel.nft import find_nft
from tests.bier.frames import frame, received, receiver, sender
from tests.waiting import wait_for

NO_NFT = find_nft() is None
SOAK = bool(os.environ.get("FARED_TEST_SOAK"))
FAILURES = 20 if SOAK else 3
Json = dict[str, Any]


def document(
    name: str, links: list[tuple[str, str]], labels: Json, frr: str = ""
) -> topology.LabTopology:
    """A fabric of these links; hosts begin with h. ``frr``: the router that runs FRR."""
    others = {"fared-lab.kind": "frr", **labels}
    nodes = dict.fromkeys(end for link in links for end in link)
    return topology.from_document(
        {
            "name": name,
            "topology": {
                "defaults": {"labels": {"fared-lab.hello-interval": 1}},
                "groups": {
                    "router": {
                        "kind": "linux",
                        "labels": {"fared-lab.kind": "fared", "fared-lab.bier": "on", **labels},
                    }
                },
                "nodes": {
                    **{n: {"kind": "linux"} for n in nodes if n[0] == "h"},
                    **{n: {"group": "router"} for n in nodes if n[0] != "h"},
                    **({frr: {"kind": "linux", "labels": others}} if frr else {}),
                },
                "links": [{"endpoints": [f"{a}:{b}", f"{b}:{a}"]} for a, b in links],
            },
        },
        Path(__file__),
        None,
    )


def clos3() -> list[tuple[str, str]]:
    """Three leaves, two spines."""
    leaves = [f"L{n}" for n in (1, 2, 3)]
    hosts = [(f"L{n}", f"h{n}") for n in (1, 2, 3)]
    return [(leaf, spine) for leaf in leaves for spine in ("S1", "S2")] + hosts


def clos5() -> list[tuple[str, str]]:
    """Two PoDs of two leaves and two spines, two planes of one super-spine."""
    found = []
    for pod in ("a", "b"):
        found += [(f"{pod}L{n}", f"{pod}S{k}") for n in (1, 2) for k in (1, 2)]
        found += [(f"{pod}S{k}", f"SS{k}") for k in (1, 2)]
    return found + [(f"{pod}L{n}", f"h{pod}{n}") for pod in ("a", "b") for n in (1, 2)]


class Ears:
    """Sockets in all routers and hosts, by BFR-id."""

    def __init__(self, fabric: Fabric, stack: ExitStack) -> None:
        self.fabric = fabric
        self.sockets = {}
        self.lengths = set()
        for plan in fabric.plan.routers:
            if plan.bfr is None:
                continue
            self.lengths.add(plan.bfr.length)
            self.sockets[plan.bfr.bfr_id] = plan.name
            for port in plan.ports:
                if port.to_host:
                    self.sockets[plan.bfr.hosts[port.peer_address]] = port.peer
        self.ears = {
            bfr_id: stack.enter_context(receiver(fabric.node(name).netns))
            for bfr_id, name in self.sockets.items()
        }
        self.senders = {
            plan.name: stack.enter_context(sender(fabric.node(plan.name).netns))
            for plan in fabric.plan.routers
            if plan.bfr is not None
        }
        self._count = 0

    def arrive(self, root: str, ids: Iterable[int], entropy: int) -> Counter[int]:
        """Send a packet from a router; count where it arrives within a moment."""
        self._count += 1
        note, wanted = b"packet %d" % self._count, sorted(ids)
        (length,) = self.lengths
        string = sum(1 << i - 1 for i in wanted)
        self.senders[root].send(frame(SUB_DOMAIN, string, note, length=length, entropy=entropy))
        return Counter(
            bfr_id
            for bfr_id, sock in self.ears.items()
            for header, got in received(sock)
            if got == note and header.bit_string == 1 << bfr_id - 1
        )


def reached(fabric: Fabric, wanted: set[int]) -> bool:
    """Whether all routers reach all BFERs, and their kernels have the tables."""
    for plan in (node for node in fabric.plan.routers if node.bfr is not None):
        found = json.loads(fabric.node(plan.name).cli("show", "bier", "--json"))
        if {b["bfr_id"] for b in found["bfers"] if not b["problem"]} != wanted:
            return False
    return True


OFTEN = [("clos3", "ospf"), ("clos5", "isis")]
MORE = [("clos3", "isis"), ("clos5", "ospf")]


@pytest.fixture(
    params=[*OFTEN, *(pytest.param(each, marks=pytest.mark.soak) for each in MORE)], ids="-".join
)
def fabric(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fabric]:
    shape, protocol = request.param
    links = clos3() if shape == "clos3" else clos5()
    made = document("bier", links, {"fared-lab.protocol": protocol})
    with Fabric.from_topology(made, directory=tmp_path / "state") as running:
        yield running


@pytest.mark.netns
@pytest.mark.slow
@pytest.mark.skipif(NO_NFT, reason="nftables is not installed")
def test_a_packet_from_any_router_arrives_once_at_each_member_after_each_failure(fabric: Fabric):
    draw = random.Random(11)
    ports = [port for node in fabric.plan.routers for port in node.fabric_ports]
    links = [(port.node, port.peer) for port in ports if port.node < port.peer]
    down: list[tuple[str, str]] = []
    with ExitStack() as stack:
        ears = Ears(fabric, stack)
        assert_arrives(fabric, ears, draw)
        for _ in range(FAILURES):
            if down and draw.random() < 0.4:
                link = down.pop(draw.randrange(len(down)))
                fabric.heal(*link)
            else:
                graph = nx.Graph(k for k in links if k not in down)
                bridges = {frozenset(k) for k in nx.bridges(graph)}
                spare = [k for k in links if k not in down and frozenset(k) not in bridges]
                if not spare:
                    continue
                link = draw.choice(spare)
                down.append(link)
                fabric.fail(*link)
            assert_arrives(fabric, ears, draw)


def assert_arrives(fabric: Fabric, ears: Ears, draw: random.Random) -> None:
    """Wait until packets arrive everywhere; from then on each does."""
    everyone = {*ears.ears}
    routers = [plan.name for plan in fabric.plan.routers]

    def complete() -> bool:
        sent = ((root, entropy) for root in routers for entropy in range(0, 16, 5))
        return all(ears.arrive(r, everyone, e) == Counter(everyone) for r, e in sent)

    wait_for(lambda: reached(fabric, everyone), 40, "all BFERs are reached")
    wait_for(complete, 20, "packets arrive everywhere")
    for _ in range(30):
        chosen = draw.sample(sorted(everyone), draw.randint(1, len(everyone)))
        root, entropy = draw.choice(routers), draw.randrange(1 << 20)
        assert ears.arrive(root, chosen, entropy) == Counter(chosen), (root, chosen, entropy)


def rated() -> topology.LabTopology:
    links = [(f"L{n}", s) for n in (1, 2, 3) for s in ("S1", "S2")]
    hosts = [(f"L{n}", f"h{n}") for n in (1, 2, 3)]
    return document("rated", links + hosts, {"fared-lab.rate": "20M"})


def test_bfr_ids_of_hosts_come_first_and_all_are_in_one_set():
    plan = make_plan(rated())
    assert [plan.node(f"L{n}").bfr.hosts for n in (1, 2, 3)] == [
        {plan.node(f"h{n}").ports[0].address.ip: n} for n in (1, 2, 3)
    ]
    assert sorted(node.bfr.bfr_id for node in plan.routers) == [4, 5, 6, 7, 8]
    assert {node.bfr.length for node in plan.routers} == {LENGTHS[0]}
    assert plan.node("h1").bfr is None


def test_the_bound_of_a_broadcast_is_the_uplinks_and_that_of_an_all_gather_the_downlinks():
    plan = make_plan(rated())
    hosts, rate = ["h1", "h2", "h3"], lambda port: port.rate
    capacity = 2 * 20e6 / 8
    assert bound(plan, rate, hosts, {"h1": 10**6}) == pytest.approx(1e6 / capacity)
    blocks = dict.fromkeys(hosts, 10**6)
    assert bound(plan, rate, hosts, blocks) == pytest.approx(2e6 / capacity)


@pytest.mark.netns
@pytest.mark.slow
@pytest.mark.skipif(NO_NFT, reason="nftables is not installed")
def test_collectives_over_bier_reach_everybody_and_load_each_uplink_once(tmp_path: Path):
    with Fabric.from_topology(rated(), directory=tmp_path / "state") as fabric:
        wait_for(lambda: reached(fabric, {*range(1, 9)}), 40, "all BFERs are reached")
        sent = uplinks(fabric, "L1")
        report = run_bier(fabric, BROADCAST_BIER, ["h1", "h2", "h3"], 1_000_000, 2)
        (job,) = report.jobs
        assert (job.moved, len(job.iterations)) == (1_000_000, 2)
        # twice the data with some 4 % of headers: once, although two hosts receive it
        assert uplinks(fabric, "L1") - sent == pytest.approx(2_000_000 * 1.04, rel=0.1)
        report = run_bier(fabric, ALL_GATHER_BIER, ["h1", "h2", "h3"], 600_000, 1)
        assert report.jobs[0].moved == 600_000
        assert report.jobs[0].bound == pytest.approx(400_000 / (2 * 20e6 / 8), rel=0.01)


def uplinks(fabric: Fabric, leaf: str) -> int:
    """Bytes that a leaf has sent to spines."""
    counters = fabric.view(leaf).counters()
    return sum(counters[p.name].sent_bytes for p in fabric.plan.node(leaf).fabric_ports)


@pytest.mark.netns
@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.skipif(NO_NFT, reason="nftables is not installed")
@pytest.mark.parametrize("protocol", ["ospf", "isis"])
def test_frr_floods_what_bfrs_advertise_and_is_no_next_hop_of_bier(tmp_path: Path, protocol: str):
    """S1 runs FRR: unicast takes both spines, BIER only S2."""
    made = document("mixed", clos3(), {"fared-lab.protocol": protocol}, frr="S1")
    with Fabric.from_topology(made, directory=tmp_path / "state") as fabric, ExitStack() as stack:
        ears = Ears(fabric, stack)
        wait_for(lambda: reached(fabric, {*ears.ears}), 60, "all BFERs are reached")
        (prefix,) = fabric.plan.node("L3").host_prefixes
        view = fabric.view("L1")
        wait_for(lambda: len(view.hops(str(prefix))) == 2, 40, "unicast over both spines")
        found = json.loads(fabric.node("L1").cli("show", "bier", "--json"))
        assert {n["interface"] for n in found["neighbors"]} == {"S2", "h1"}

        def complete() -> bool:
            return all(ears.arrive("L1", ears.ears, e) == Counter([*ears.ears]) for e in range(16))

        wait_for(complete, 20, "packets arrive everywhere")
