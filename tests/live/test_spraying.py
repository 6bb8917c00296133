"""Sprayed packets: what a daemon puts into nftables, keeps right there, and takes away."""

from __future__ import annotations

import copy
import json
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.kernel.nft import find_nft
from tests.live.daemons import RIGHT_STUB, Json, Live, Pair, running_pair
from tests.live.daemons import _config as usual
from tests.live.isis_daemons import RIGHT_STUB6, IsisPair
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.netns,
    pytest.mark.slow,
    pytest.mark.skipif(find_nft() is None, reason="nftables is not installed"),
]

TARGET = RIGHT_STUB.replace(".0/24", ".9")
SOURCE, SOURCE6 = "10.0.91.9", "2001:db8:91::9"
PACKETS = 4000


def configure(identity: str, hostname: str) -> Json:
    config = usual(identity, hostname)
    config["interfaces"] = {"u0": {"bandwidth": "100M"}, "u1": {"bandwidth": "300M"}}
    return {**config, "adaptive": {"granularity": "packet"}}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Links of 100 and 300 Mbit/s."""
    with running_pair("sp", tmp_path_factory.mktemp("spray"), configure) as pair:
        yield pair


@pytest.fixture
def pair(running: Pair) -> Pair:
    """The pair, which sprays packets; a test may change all of it."""
    if not running.left.alive():
        running.left.start()
    running.left.reload()
    running.await_routes()
    wait_for(lambda: sorted(map(len, rounds(running.left))) == [4], 30, "packets are sprayed")
    return running


def listed(daemon: Live) -> list[Json]:
    """What is in nftables."""
    text = daemon.netns.run(["nft", "-j", "list", "ruleset"]).stdout
    return [entry for entry in json.loads(text)["nftables"] if "metainfo" not in entry]


def rules(daemon: Live, start: str) -> dict[str, list[Json]]:
    """The rules of the chains whose names start so."""
    found: dict[str, list[Json]] = {}
    for entry in listed(daemon):
        if "rule" in entry and entry["rule"]["chain"].startswith(start):
            found.setdefault(entry["rule"]["chain"], []).append(entry["rule"])
    return found


def rounds(daemon: Live) -> list[list[str]]:
    """The next hops of each round, in the order of packets."""
    return [
        [to["goto"]["target"] for _, to in rule["expr"][0]["vmap"]["data"]["set"]]
        for (*_, rule) in rules(daemon, "group_").values()
        if "vmap" in rule["expr"][0]
    ]


def counted(daemon: Live) -> dict[str, int]:
    """The packets of each mark."""
    chains = rules(daemon, "hop_")
    return {name: rule["expr"][1]["counter"]["packets"] for name, (rule,) in chains.items()}


def leftovers(daemon: Live) -> list[str]:
    """Everything about sprayed packets that a kernel holds."""
    ip = daemon.netns.ip
    found = [str(entry) for entry in listed(daemon)]
    for family in ("-4", "-6"):
        found += [line for line in ip(family, "rule").splitlines() if "proto 201" in line]
        routes = ip(family, "route", "show", "table", "all", "proto", "201").splitlines()
        found += [line for line in routes if line.startswith("default") and "table 2621" in line]
    return found


def elements(daemon: Live, name: str) -> list[Json]:
    """The elements of a map."""
    maps = [entry["map"] for entry in listed(daemon) if "map" in entry]
    return [each for found in maps if found["name"] == name for each in found.get("elem", [])]


def forward(daemon: Live, packets: int, port: int = 4791, target: str = TARGET) -> None:
    """Let a host behind the router send UDP packets, with one source port each."""
    (link,) = json.loads(daemon.netns.ip("-json", "link", "show", "d0"))
    udp = struct.pack("!HHHH", 5000, port, 28, 0) + bytes(20)
    packet = ipv6_packet(target, udp) if ":" in target else ipv4_packet(target, udp)
    frame = bytes.fromhex(link["address"].replace(":", "")) + b"\x02\0\0\0\0\1" + packet
    with daemon.netns.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        with daemon.netns.entered():
            sock.bind(("dx", 0))
        for _ in range(packets):
            sock.send(frame)


def gained(daemon: Live, packets: int, target: str = TARGET) -> dict[str, int]:
    """How many of these packets each mark gets, once the kernel has forwarded all of them."""
    before = counted(daemon)
    forward(daemon, packets, target=target)

    def forwarded() -> dict[str, int] | None:
        found = {name: now - before.get(name, 0) for name, now in counted(daemon).items()}
        return found if sum(found.values()) >= packets else None

    found: dict[str, int] = wait_for(forwarded, 20, lambda: f"{before}, now {counted(daemon)}")
    return found


def ipv4_packet(target: str, udp: bytes) -> bytes:
    """The packet behind its Ethernet type."""
    addresses = socket.inet_aton(SOURCE) + socket.inet_aton(target)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + addresses
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return b"\x08\0" + header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:] + udp


def ipv6_packet(target: str, udp: bytes) -> bytes:
    """The packet behind its Ethernet type."""
    ends = (socket.inet_pton(socket.AF_INET6, address) for address in (SOURCE6, target))
    return b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, len(udp), 17, 64) + b"".join(ends) + udp


def test_one_flow_takes_both_links_in_proportion_to_their_weights(pair: Pair):
    assert sorted(gained(pair.left, PACKETS).values()) == [PACKETS // 4, 3 * PACKETS // 4]


def test_packets_of_the_router_itself_follow_their_flow(pair: Pair):
    before = counted(pair.left)
    with pair.left.netns.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _ in range(100):
            sock.sendto(b"x", (TARGET, 4791))
    assert counted(pair.left) == before


def test_what_another_program_deletes_is_restored_at_once(pair: Pair):
    drift = pair.left.show("status")["spraying"]["drift"]
    pair.left.netns.run(["nft", "delete", "table", "inet", "fared"])
    wait_for(lambda: rounds(pair.left), 30, "packets are sprayed again")
    pair.left.netns.ip("rule", "delete", "pref", "32764")
    wait_for(lambda: "32764:" in pair.left.netns.ip("rule"), 30, "the rule is back")
    assert pair.left.show("status")["spraying"]["drift"] > drift
    assert sorted(gained(pair.left, 400).values()) == [100, 300]


def test_documents_and_metrics_tell_the_granularity(pair: Pair):
    left = pair.left
    forward(left, 400)
    (vector,) = left.show("weights", prefix=RIGHT_STUB)["vectors"]
    assert vector["granularity"] == "packet"
    explained = left.ask("explain", prefix=RIGHT_STUB)
    assert explained["granularity"] == "packet"
    assert "each packet takes the next hop that is due" in explained["summary"]
    status = left.show("status")["spraying"]
    assert (status["granularity"], status["problem"]) == ("packet", None)
    assert status["prefixes"] >= 2
    wait_for(
        lambda: sum(hop["packets"] for hop in left.show("status")["spraying"]["nexthops"]) >= 400,
        20,
        "the packets of each next hop",
    )
    found = left.metrics()
    assert found['fared_granularity_routes{granularity="packet"}'] == status["prefixes"]
    assert found['fared_sprayed_packets_total{address="10.129.1.1",interface="u1"}'] >= 300
    for command in (("show", "status"), ("show", "weights"), ("explain", RIGHT_STUB)):
        left.assert_answers(*command)


def test_a_lost_link_is_taken_out_of_the_round_and_comes_back(pair: Pair):
    pair.left.netns.ip("link", "set", "u1", "down")
    try:
        wait_for(lambda: not rounds(pair.left), 30, "one next hop is not sprayed")
        before = counted(pair.left)
        forward(pair.left, 50)
        assert counted(pair.left) == before
    finally:
        pair.left.netns.ip("link", "set", "u1", "up")
    wait_for(lambda: sorted(map(len, rounds(pair.left))) == [4], 30, "both are sprayed again")
    pair.await_routes()
    assert sorted(gained(pair.left, 400).values()) == [100, 300]


def test_a_reload_to_flowlets_keeps_the_weights(pair: Pair):
    pair.left.reload({**pair.left.config, "adaptive": {"granularity": "flowlet"}})
    wait_for(lambda: any("flows_20_" in str(entry) for entry in listed(pair.left)), 30, "flowlets")
    wait_for(
        lambda: (
            pair.left.show("weights", prefix=RIGHT_STUB)["vectors"][0]["granularity"] == "flowlet"
        ),
        20,
        "shown",
    )
    assert sum(gained(pair.left, 300).values()) == 300
    assert pair.left.complaints() == []


def test_while_nft_fails_packets_follow_their_flow(pair: Pair, tmp_path: Path):
    """The daemon routes meanwhile; what was sprayed before stays as it was, and changes later."""
    left, broken = pair.left, tmp_path / "broken"
    program = tmp_path / "nft"
    program.write_text(
        f'#!/bin/sh\n[ -e {broken} ] && echo broken >&2 && exit 1\nexec {find_nft()} "$@"\n'
    )
    program.chmod(0o755)
    assert left.terminate()[0] == 0
    broken.touch()
    left.start({"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    pair.await_routes()
    wait_for(lambda: left.show("status")["ready"], 30, "ready")
    assert listed(left) == []
    assert left.show("weights", prefix=RIGHT_STUB)["vectors"][0]["granularity"] == "flow"
    wait_for(lambda: "spray-not-read" in {r["event"] for r in left.records()}, 20, "a log record")
    wait_for(lambda: "broken" in str(left.show("status")["spraying"]["problem"]), 20, "a problem")
    broken.unlink()
    wait_for(lambda: rounds(left), 60, "packets are sprayed once nft works")
    wait_for(lambda: left.show("status")["spraying"]["problem"] is None, 20, "no problem")
    left.terminate()


def test_isis_sprays_packets_of_both_families(tmp_path_factory: pytest.TempPathFactory):
    pair = IsisPair("si", tmp_path_factory.mktemp("isis"))
    try:
        pair.left.config["adaptive"] = {"granularity": "packet"}
        pair.start()
        wait_for(lambda: elements(pair.left, "ipv6") and elements(pair.left, "ipv4"), 30, "sprayed")
        vectors = pair.left.show("weights")["vectors"]
        found = {v["af"]: v["granularity"] for v in vectors if len(v["members"]) > 1}
        assert found == {"ipv4": "packet", "ipv6": "packet"}
        for target in (TARGET, RIGHT_STUB6.replace("/64", "9")):
            found = gained(pair.left, 400, target=target)
            assert sorted(found.values())[-2:] == [200, 200], target
            assert sum(found.values()) == 400
        assert pair.left.terminate()[0] == 0
        assert leftovers(pair.left) == []
    finally:
        pair.close()


def of_bgp(identity: str, hostname: str) -> Json:
    """The same links with unnumbered sessions, and resilient groups."""
    config = configure(identity, hostname)
    del config["ospf"]
    number = {"left": 65001, "right": 65002}[hostname]
    neighbors = {"u*": {"import": ["all"], "export": ["own"], "connect-retry": 1}}
    bgp = {"as": number, "networks": ["lo", "d0"], "neighbors": neighbors}
    return {**config, "bgp": bgp, "fib": {"group-type": "resilient"}}


def test_routes_of_bgp_are_sprayed_by_packet_by_flowlet_and_with_few_flows(
    tmp_path_factory: pytest.TempPathFactory,
):
    """In resilient groups; by their weights, which are those of the links, 1:3."""
    pair = Pair("sb", tmp_path_factory.mktemp("bgp"), of_bgp)
    left = pair.left
    try:
        for daemon in (left, pair.right):
            daemon.start()
        wait_for(lambda: sorted(map(len, rounds(left))) == [4], 30, "packets are sprayed")
        assert sorted(gained(left, 400).values()) == [100, 300]
        groups = [
            one
            for one in json.loads(left.netns.ip("-j", "-d", "nexthop", "show", "proto", "201"))
            if "group" in one
        ]
        assert {one["type"] for one in groups} == {"resilient"}
        left.reload({**left.config, "adaptive": {"granularity": "flowlet"}})

        def granularities() -> set[str]:
            vectors = left.show("weights", prefix=RIGHT_STUB)["vectors"]
            return {one["granularity"] for one in vectors}

        wait_for(lambda: granularities() == {"flowlet"}, 30, "flowlets")
        left.reload({**left.config, "adaptive": {"flows": 16}})

        def part() -> float:
            weights = [hop.weight for hop in pair.view.hops(RIGHT_STUB)]
            return min(weights) / sum(weights)

        wait_for(lambda: part() < 0.23, 30, lambda: f"few flows: {part()}")
        assert left.complaints() == []
    finally:
        pair.close()


def test_a_clean_exit_removes_all_of_it(pair: Pair):
    assert leftovers(pair.left)
    assert pair.left.terminate()[0] == 0
    assert leftovers(pair.left) == []
    assert pair.left.complaints() == []


def test_a_restart_finds_what_it_left_and_changes_nothing(pair: Pair):
    handles = [entry for entry in listed(pair.left) if "rule" in entry]
    pair.left.kill()
    pair.left.start()
    pair.await_routes()
    wait_for(lambda: pair.left.show("status")["ready"], 30, "ready")
    assert [entry for entry in listed(pair.left) if "rule" in entry] == handles


def test_a_reload_to_flows_removes_all_of_it(pair: Pair):
    pair.left.reload({**pair.left.config, "adaptive": {"granularity": "flow"}})
    wait_for(lambda: leftovers(pair.left) == [], 30, "nothing is left")


def test_a_daemon_that_sprays_nothing_removes_what_a_former_process_left(pair: Pair):
    pair.left.kill()
    usual_config = pair.left.config
    try:
        pair.left.config = {**usual_config, "adaptive": {"granularity": "flow"}}
        pair.left.start()
        wait_for(lambda: leftovers(pair.left) == [], 30, "nothing is left")
    finally:
        pair.left.config = usual_config


def test_a_changed_bandwidth_rewrites_one_round(pair: Pair):
    blocks = [entry for entry in listed(pair.left) if "map" in entry]
    config = copy.deepcopy(pair.left.config)
    config["interfaces"]["u0"]["bandwidth"] = "300M"
    pair.left.reload(config)
    wait_for(lambda: sorted(map(len, rounds(pair.left))) == [2], 30, "1:1")
    assert [entry for entry in listed(pair.left) if "map" in entry] == blocks
