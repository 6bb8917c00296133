"""Sprayed packets through the real kernel: a source, a router with four links, and a sink."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, parse_prefix
from fared.extensions.lab.namespaces import Netns
from fared.kernel.fib import KernelFib
from fared.kernel.nft import NftError, find_nft
from fared.kernel.spray import KernelSpray, SprayTable, open_spray
from fared.paths.fib.model import Member, PutGroup, PutNextHop, PutRoute
from fared.paths.fib.settings import FibSettings, Granularity, SprayMatch, SpraySettings
from fared.paths.fib.spray import DeleteRound, SprayRound, SprayState, operations_between
from fared.paths.fib.spray_planner import SprayPlanner
from tests.kernel.netns import Namespaces, inside, neighbor_tables, run
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.netns,
    pytest.mark.slow,
    pytest.mark.skipif(find_nft() is None, reason="nftables is not installed"),
]

BASE, GROUP = FibSettings().id_base, FibSettings().group_base
HOPS = [BASE + n for n in range(4)]
PACKET = SpraySettings(Granularity.PACKET)
FLOWLET = SpraySettings(Granularity.FLOWLET, gap=0.1)
TARGETS = {FAMILY_IPV4: "198.51.100.9", FAMILY_IPV6: "2001:db8:51::9"}
PREFIXES = {FAMILY_IPV4: "198.51.100.0/24", FAMILY_IPV6: "2001:db8:51::/48"}
WEIGHTS = (1, 5, 5, 5)


class Box:
    """The three namespaces; the router forwards to ``TARGETS`` over a weighted group."""

    def __init__(self, namespaces: Namespaces, family: int = FAMILY_IPV4) -> None:
        self.family = family
        self.source, self.router, self.sink = (namespaces.add() for _ in range(3))
        for name in namespaces.names:  # addresses are usable at once
            Netns(name).sysctl("ipv6.conf.all.accept_dad", 0)
            Netns(name).sysctl("ipv6.conf.default.accept_dad", 0)
        namespaces.pair(self.source, self.router, "in", 9)
        links = [namespaces.pair(self.router, self.sink, f"e{n}", n)[0] for n in range(4)]
        Netns(self.router).sysctl("ipv4.ip_forward", 1)
        Netns(self.router).sysctl("ipv6.conf.all.forwarding", 1)
        run("ip route add default via 10.0.9.2", self.source)
        for name, end, link in [(self.source, 1, "in"), (self.router, 2, "in")]:
            run(f"ip address add fd00:9::{end}/64 dev {link} nodad", name)
        run("ip -6 route add default via fd00:9::2", self.source)
        for n in range(4):
            run(f"ip address add fd00:{n}::1/64 dev e{n} nodad", self.router)
            run(f"ip address add fd00:{n}::2/64 dev e{n} nodad", self.sink)
        with inside(self.router):
            self.fib = KernelFib()
        gateways = [
            (10 << 24) + (n << 8) + 2 if family == FAMILY_IPV4 else (0xFD00 << 112) + (n << 96) + 2
            for n in range(4)
        ]
        hops = [(link, family, gateways[n], False) for n, link in enumerate(links)]
        self.do(*(PutNextHop(i, hop) for i, hop in zip(HOPS, hops, strict=True)))
        self.weigh(*WEIGHTS)
        self.do(PutRoute(parse_prefix(PREFIXES[family]), GROUP))
        wait_for(self.resolved, 10, lambda: f"the neighbors answer; {neighbor_tables()}")
        opened = open_spray(self.fib)
        assert opened is not None
        self.kernel: KernelSpray = opened
        self.planner = SprayPlanner(PACKET)
        self.planner.adopt(SprayState())

    def resolved(self) -> bool:
        found = json.loads(run("ip -json neigh show proto 201", self.router))
        return sum("lladdr" in entry for entry in found) == len(HOPS)

    def do(self, *operations) -> None:
        """Change the FIB."""
        assert [result.error for result in self.fib.apply(operations)] == [0] * len(operations)

    def weigh(self, *weights: int) -> None:
        members = tuple(Member(*pair) for pair in zip(HOPS, weights, strict=True))
        self.do(PutGroup(GROUP, members, replace=GROUP in self.fib.dump().groups))

    def spray(self, settings: SpraySettings | None = None) -> int:
        """Bring the kernel to the desired state; return the number of operations."""
        if settings is not None:
            self.planner.settings = settings
        state = self.fib.dump()
        self.planner.lose_marks(state.nexthops)
        self.planner.desire(state, state.routes, ())
        operations = self.planner.plan(0.0)
        if operations:
            with inside(self.router):
                refused = self.kernel.apply(operations)
            assert refused == []
            self.planner.answered("", None, 0.0)
        return len(operations)

    def read(self) -> SprayState:
        with inside(self.router):
            return self.kernel.read()

    def received(self) -> list[int]:
        """Packets that each link delivered."""
        links = json.loads(run("ip -json -stats link", self.sink))
        return [
            link["stats64"]["rx"]["packets"]
            for name in ("e0", "e1", "e2", "e3")
            for link in links
            if link["ifname"] == name
        ]

    def send(
        self, packets: int, port: int = 4791, sources: int = 1, sizes: tuple[int, ...] = (50,)
    ) -> list[int]:
        """Send packets of these sizes in turn; return how many each link delivered."""
        before = self.received()
        number = socket.AF_INET if self.family == FAMILY_IPV4 else socket.AF_INET6
        for _ in range(sources):
            with Netns(self.source).socket(number, socket.SOCK_DGRAM) as sock:
                for at in range(packets):
                    payload = b"x" * sizes[at % len(sizes)]
                    sock.sendto(payload, (TARGETS[self.family], port))
        self.await_received(before, packets * sources)
        return [now - then for now, then in zip(self.received(), before, strict=True)]

    def await_received(self, before: list[int], packets: int) -> None:
        """Wait until the kernel has forwarded so many packets, or must have lost some."""
        with contextlib.suppress(AssertionError):
            wait_for(lambda: sum(self.received()) - sum(before) >= packets, 5, "packets")

    def passed(self) -> list[int]:
        """Bytes that left with the mark of each next hop."""
        self.read()
        return [self.kernel.counted[hop].size for hop in HOPS]

    def nft(self, command: str) -> None:
        """Change nftables as another program does."""
        Netns(self.router).run(["nft", command])

    def close(self) -> None:
        self.fib.close()


@pytest.fixture(params=[FAMILY_IPV4, FAMILY_IPV6], ids=["ipv4", "ipv6"])
def both(request, namespaces: Namespaces) -> Iterator[Box]:
    made = Box(namespaces, request.param)
    yield made
    made.close()


@pytest.fixture
def box(namespaces: Namespaces) -> Iterator[Box]:
    made = Box(namespaces)
    yield made
    made.close()


def near(counts: list[int], packets: int, weights: tuple[int, ...] = WEIGHTS) -> None:
    """Nothing is lost, and each share is within half a point of its weight.

    Links also carry a few packets of neighbor discovery.
    """
    assert packets <= sum(counts) <= packets + 20, counts
    for count, weight in zip(counts, weights, strict=True):
        assert abs(count / packets - weight / sum(weights)) < 0.005, counts


def test_ten_thousand_packets_of_one_flow_have_the_shares_of_the_weights(both: Box):
    assert both.spray()
    near(both.send(10_000), 10_000)


@pytest.mark.parametrize("pattern", [(1000, 20), (1000, 20, 20, 20), (1000, 1000, 20, 20)])
def test_acknowledgments_between_data_do_not_change_the_shares_of_data(
    both: Box, pattern: tuple[int, ...]
):
    """If they went round together, some next hops would get no data."""
    both.weigh(1, 1, 1, 1)
    both.spray()
    both.send(2400, sizes=pattern)
    passed = both.passed()
    assert max(passed) / min(passed) < 1.01, passed


def test_flows_are_hashed_again_once_nothing_is_sprayed(box: Box):
    box.spray()
    box.spray(SpraySettings())
    assert box.read().empty
    assert "proto 201" not in run("ip rule", box.router)
    assert "proto 201" not in run("ip -6 rule", box.router)
    assert max(box.send(500)) >= 500


def test_a_flowlet_keeps_its_link_and_the_next_one_has_the_next(both: Box):
    # no sender on a busy machine stands still for so long within a flowlet
    both.spray(replace(FLOWLET, gap=2.0))
    counts = both.send(50, sources=16)
    near([round(n / 50) for n in counts], 16)


def test_flowlets_end_after_their_gap(box: Box):
    box.spray(replace(FLOWLET, gap=0.02))
    links = set()

    def another() -> bool:
        counts = box.send(3)
        links.add(counts.index(max(counts)))
        return len(links) > 1

    wait_for(another, 10, "another flowlet takes another link")


def test_only_matching_packets_are_sprayed(box: Box):
    box.spray(replace(PACKET, match=SprayMatch(udp_ports=(4791,))))
    near(box.send(1600), 1600)
    assert max(box.send(400, port=5000)) >= 400


def test_packets_that_others_have_marked_keep_their_path(box: Box):
    box.spray()
    box.nft("add table inet other")
    box.nft("add chain inet other first { type filter hook prerouting priority -150; }")
    box.nft("add rule inet other first meta mark set 7")
    assert max(box.send(400)) >= 400


@pytest.mark.parametrize("settings", [PACKET, FLOWLET], ids=["packet", "flowlet"])
def test_changed_weights_lose_no_packet(box: Box, settings: SpraySettings):
    """The weights change back and forth while packets are forwarded."""
    box.spray(settings)
    before, over = box.received(), threading.Event()
    sent = 0

    def stream() -> None:
        nonlocal sent
        with Netns(box.source).socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            while not over.is_set():
                sock.sendto(b"x" * 50, (TARGETS[FAMILY_IPV4], 4791))
                sent += 1

    sender = threading.Thread(target=stream)
    sender.start()
    for turn in range(30):
        wait_for(lambda turn=turn: sent > 40 * turn, 60, "packets between two changes")
        box.weigh(*((1, 1, 1, 1), (5, 1, 1, 3), (1, 5, 5, 5))[turn % 3])
        assert box.spray() == 1
    over.set()
    sender.join()
    box.await_received(before, sent)
    arrived = sum(box.received()) - sum(before)
    assert sent > 1000
    assert sent <= arrived <= sent + 20


def test_a_lost_next_hop_sends_its_packets_over_the_others(box: Box):
    """The kernel removes it with its link; the round still has its mark."""
    box.spray()
    run("ip link set e1 down", box.router)
    counts = box.send(1600)
    assert counts[1] == 0
    assert sum(counts) >= 1600


def test_without_their_rules_packets_follow_their_flow_until_these_are_back(both: Box):
    both.spray()
    both.kernel.lift()
    assert max(both.send(400)) >= 400
    assert both.planner.reconcile(both.read()) == len(HOPS)
    assert both.spray() == len(HOPS)
    near(both.send(1600), 1600)


@pytest.mark.parametrize("settings", [PACKET, FLOWLET], ids=["packet", "flowlet"])
@pytest.mark.parametrize("match", [SprayMatch(), SprayMatch((26, 46), (4791,), (80, 443))])
def test_what_was_written_is_read_back(box: Box, settings: SpraySettings, match: SprayMatch):
    prefixes = tuple(parse_prefix(p) for p in ("198.51.100.0/25", "198.51.100.200/32"))
    box.spray(replace(settings, match=match, prefixes=prefixes))
    assert box.read() == box.planner.desired
    assert box.fib.leftovers == 0
    assert box.spray() == 0


TAMPERED = {
    "table": "delete table inet fared",
    "hook": "flush chain inet fared packets",
    "destinations": "flush map inet fared ipv4",
    "round": f"flush chain inet fared group_{GROUP}",
    "another rule in a round": f"insert rule inet fared group_{GROUP} drop",
    "the round of small packets": f"delete rule inet fared group_{GROUP} handle SMALL",
    "the round of others": f"delete rule inet fared group_{GROUP} handle HANDLE",
    "small packets without a round": f"replace rule inet fared group_{GROUP} handle SMALL"
    f" meta length < 512 goto hop_{BASE}",
    "another order": f"replace rule inet fared group_{GROUP} handle HANDLE"
    f" meta mark vmap {{ 1 : goto hop_{BASE}, 2 : goto hop_{BASE} }}",
    "mark": f"flush chain inet fared hop_{BASE}",
    "another chain": "add chain inet fared strange",
    "another map": "add map inet fared strange { type mark : verdict; }",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_another_program_changes_is_found_and_restored(box: Box, what: str):
    box.spray()
    rule = run(f"nft -a list chain inet fared group_{GROUP}", box.router)
    *_, small, _, handle = re.findall(r"# handle (\d+)", rule)
    box.nft(TAMPERED[what].replace("HANDLE", handle).replace("SMALL", small))
    assert box.planner.reconcile(box.read()) > 0
    assert box.spray() > 0
    assert box.read() == box.planner.desired
    near(box.send(1600), 1600)


TAMPERED_FLOWLETS = {
    "the search for a flowlet": (0, "drop"),
    "flows of fewer fields": (
        0,
        f"meta mark set jhash ip saddr mod 4294967295 seed 4791 map @flows_100_{GROUP}",
    ),
    "what begins a flowlet": (2, f"meta mark set numgen inc mod 2 map {{ 0: {BASE}, 1: {BASE} }}"),
    "the record of a flowlet": (3, "goto marked"),
    "its end": (5, "accept"),
}


@pytest.mark.parametrize("what", TAMPERED_FLOWLETS)
def test_what_another_program_changes_in_flowlets_is_found_and_restored(box: Box, what: str):
    box.spray(FLOWLET)
    place, rule = TAMPERED_FLOWLETS[what]
    listed = run(f"nft -a list chain inet fared group_{GROUP}", box.router)
    handles = re.findall(r"# handle (\d+)", listed)[-6:]
    box.nft(f"replace rule inet fared group_{GROUP} handle {handles[place]} {rule}")
    assert box.planner.reconcile(box.read()) > 0
    assert box.spray() > 0
    assert box.read() == box.planner.desired


@pytest.mark.parametrize(
    "command",
    [
        f"ip rule delete table {BASE}",
        f"ip route delete default table {BASE}",
        "ip rule delete pref 32764",
        f"ip route replace default nhid {BASE + 1} table {BASE} metric 20",
    ],
)
def test_deleted_rules_and_routes_are_found_and_restored(box: Box, command: str):
    box.spray()
    run(command, box.router)
    assert box.planner.reconcile(box.read()) > 0
    assert box.spray() > 0
    assert box.read() == box.planner.desired
    assert operations_between(box.read(), box.planner.desired) == []


def test_a_thousand_destinations_share_the_rounds_of_their_groups(box: Box):
    hops = list(HOPS)
    groups = {GROUP + 1 + n: (Member(hops[0], 1), Member(hops[1], n + 2)) for n in range(20)}
    box.do(*(PutGroup(g, members, replace=False) for g, members in groups.items()))
    prefixes = [parse_prefix(f"10.{100 + n // 250}.{n % 250}.0/24") for n in range(1000)]
    box.do(*(PutRoute(prefix, GROUP + 1 + n % 20) for n, prefix in enumerate(prefixes)))
    box.spray()
    state = box.read()
    assert state == box.planner.desired
    assert (len(state.rounds), len(state.blocks)) == (21, 1001)


def test_a_change_that_is_too_long_for_one_message_takes_several(box: Box, tmp_path: Path):
    """As in a user namespace, where nft may not enlarge the buffer of its socket."""
    groups = {GROUP + 1 + n: tuple(map(Member, HOPS, (n + 2, 201, 202, 203))) for n in range(20)}
    box.do(*(PutGroup(g, members, replace=False) for g, members in groups.items()))
    prefixes = [parse_prefix(f"10.100.{n}.0/24") for n in range(200)]
    box.do(*(PutRoute(prefix, GROUP + 1 + n % 20) for n, prefix in enumerate(prefixes)))
    text, log = tmp_path / "text", tmp_path / "log"
    box.kernel.nft = fake(
        tmp_path,
        f"""case $1 in -f) ;; *) exec {find_nft()} "$@" ;; esac
        cat > {text}; wc -c < {text} >> {log}
        [ $(wc -c < {text}) -gt 40000 ] && echo 'netlink: Error: Message too long' >&2 && exit 1
        exec {find_nft()} -f {text}""",
    )
    box.spray()
    assert box.read() == box.planner.desired
    sizes = [int(line) for line in log.read_text().split()]
    assert sizes[0] > 200_000
    assert len(sizes) > 5
    near(box.send(1600), 1600)
    box.spray(FLOWLET)
    assert box.read() == box.planner.desired


# --- failures of nft


def fake(directory: Path, script: str) -> SprayTable:
    """A program in the place of nft."""
    program = directory / "nft"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return SprayTable(str(program))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'netlink: Error: cache initialization failed' >&2; exit 1", "cache initialization"),
        ("exit 3", "status 3"),
        ("echo nonsense", "no list"),
        ("echo '{}'", "no list"),
        ("kill -ABRT $$", "status -6"),
    ],
)
def test_a_failure_of_nft_is_reported(tmp_path: Path, script: str, words: str):
    with pytest.raises(NftError, match=words):
        fake(tmp_path, script).read()


def test_an_nft_that_does_not_answer_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fared.kernel.nft._TIMEOUT", 0.1)
    with pytest.raises(NftError, match="no answer within"):
        fake(tmp_path, "exec sleep 20").read()


def test_an_nft_that_went_away_is_reported():
    with pytest.raises(NftError, match="No such file"):
        SprayTable("/nowhere/nft").read()


def test_a_refused_transaction_changes_nothing(box: Box):
    box.spray()
    before = box.read()
    unknown = DeleteRound(1, SprayRound(()))
    with inside(box.router), pytest.raises(NftError):
        box.kernel.nft.apply([*operations_between(SprayState(), before), unknown])
    assert box.read() == before
