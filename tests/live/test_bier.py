"""BIER in daemons: what they put into nftables, keep right there, and take away."""

from __future__ import annotations

import copy
import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import dpkt
import pytest

from fared.kernel.nft import find_nft
from tests.bier.frames import frame, received, receiver, sender
from tests.live.daemons import LEFT, LINKS, Json, Live, Pair, running_pair
from tests.live.daemons import _config as usual
from tests.live.isis_daemons import IsisPair
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.netns,
    pytest.mark.slow,
    pytest.mark.skipif(find_nft() is None, reason="nftables is not installed"),
]

SUB_DOMAIN = 3
LEFT_ID, RIGHT_ID, LEFT_HOST, RIGHT_HOST = 33, 34, 1, 2
ALL = sum(1 << i - 1 for i in (LEFT_ID, RIGHT_ID, LEFT_HOST, RIGHT_HOST))


def section(identity: str) -> Json:
    left = identity == LEFT
    host = {"10.0.91.9": LEFT_HOST} if left else {"10.0.92.9": RIGHT_HOST}
    return {"sub-domain": SUB_DOMAIN, "bfr-id": LEFT_ID if left else RIGHT_ID, "hosts": host}


def configure(identity: str, hostname: str) -> Json:
    return {**usual(identity, hostname), "bier": section(identity)}


@pytest.fixture(scope="module", params=["ospf", "isis-unnumbered"])
def running(request, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Over IS-IS, ports have no IPv4 address; those of ``lab/test_bier.py`` have."""
    directory = tmp_path_factory.mktemp("bier")
    if request.param == "ospf":
        with running_pair("bo", directory, configure) as pair:
            yield pair
        return
    isis = IsisPair("bi", directory, numbered=False)
    for daemon in (isis.left, isis.right):
        daemon.config["bier"] = section(daemon.config["router-id"])
    try:
        isis.start()
        yield isis
    finally:
        isis.close()


@pytest.fixture
def pair(running: Pair) -> Pair:
    """The pair, which forwards BIER packets; a test may change all of it."""
    for daemon in (running.left, running.right):
        if not daemon.alive():
            daemon.start()
        daemon.reload()
    running.await_routes()
    wait_for(lambda: reached(running.left) == reached(running.right) == [1, 2, 33, 34], 40, "BFERs")
    return running


def reached(daemon: Live) -> list[int]:
    """The BFERs that a daemon reaches."""
    return [b["bfr_id"] for b in daemon.show("bier")["bfers"] if not b["problem"]]


def table(daemon: Live) -> list[Json]:
    """What is in nftables."""
    text = daemon.netns.run(["nft", "-j", "list", "ruleset"]).stdout
    return [entry for entry in json.loads(text)["nftables"] if "metainfo" not in entry]


class Ears:
    """Sockets of both routers and, on ``dx``, both hosts."""

    def __init__(self, pair: Pair) -> None:
        self.sockets = {name: receiver(d.netns) for name, d in ends(pair).items()}

    def heard(self, note: bytes) -> list[tuple[str, int]]:
        """Where a note arrived, with the bits of each copy, in order."""
        return sorted(
            (name, header.bit_string)
            for name, sock in self.sockets.items()
            for header, got in received(sock)
            if got == note
        )


def ends(pair: Pair) -> dict[str, Live]:
    return {"left": pair.left, "right": pair.right}


def arrives(pair: Pair, entropy: int = 0) -> bool:
    """Whether a packet of the left router to all BFERs arrives once at each.

    Hosts are in the namespace of their router, at the other end of ``d0``.
    """
    ears = Ears(pair)
    note = b"note %d" % entropy
    with sender(pair.left.netns) as sock:
        sock.send(frame(SUB_DOMAIN, ALL, note, entropy=entropy))
    wanted = sorted(
        (name, 1 << i - 1)
        for name, ids in (("left", (LEFT_ID, LEFT_HOST)), ("right", (RIGHT_ID, RIGHT_HOST)))
        for i in ids
    )
    found = ears.heard(note)
    for sock in ears.sockets.values():
        sock.close()
    return found == wanted


def test_a_packet_arrives_once_at_each_router_and_host(pair: Pair):
    wait_for(lambda: arrives(pair), 40, "a packet at each BFER")
    assert all(arrives(pair, entropy) for entropy in range(16))


def test_both_links_are_used_by_half_of_the_tables(pair: Pair):
    found = {b["bfr_id"]: b for b in pair.left.show("bier")["bfers"]}
    assert [(h["interface"], h["tables"]) for h in found[RIGHT_ID]["nexthops"]] == [
        ("u0", 8),
        ("u1", 8),
    ]
    assert (found[LEFT_ID]["local"], found[LEFT_HOST]["host"]) == (True, True)
    assert found[RIGHT_HOST]["hostname"] == "right"


def test_the_tables_are_printed(pair: Pair):
    for command in (("show", "bier"), ("show", "bier", "bift")):
        pair.left.assert_answers(*command)


def test_without_a_link_everything_takes_the_other(pair: Pair):
    pair.left.netns.ip("link", "set", "u0", "down")
    try:
        wait_for(lambda: all(arrives(pair, entropy) for entropy in range(16)), 40, "packets")
        assert {n["interface"] for n in pair.left.show("bier")["neighbors"]} == {"u1", "d0"}
    finally:
        pair.left.netns.ip("link", "set", "u0", "up")


@pytest.mark.parametrize(
    "damage", ["flush chain netdev fared_bier packets", "delete table netdev fared_bier"]
)
def test_what_others_change_is_repaired_at_once(pair: Pair, damage: str):
    wait_for(lambda: arrives(pair), 40, "a packet at each BFER")
    pair.left.netns.run(["nft", *damage.split()])
    wait_for(lambda: arrives(pair), 40, "packets again")
    assert any(r["event"] == "bier-drift-repaired" for r in pair.left.records())


def test_a_reload_changes_ids_and_hosts(pair: Pair):
    config = copy.deepcopy(pair.right.config)
    config["bier"] |= {"bfr-id": 50, "hosts": {}}
    pair.right.reload(config)
    wait_for(lambda: reached(pair.left) == [1, 33, 50], 40, "the other id")
    pair.right.reload()
    wait_for(lambda: reached(pair.left) == [1, 2, 33, 34], 40, "the former ids")


def test_the_next_process_takes_over_while_packets_flow(pair: Pair):
    wait_for(lambda: arrives(pair), 40, "a packet at each BFER")
    pair.right.kill()
    assert arrives(pair)
    pair.right.start()
    pair.await_routes()
    wait_for(lambda: arrives(pair), 40, "packets through the next process")


def test_a_neighbor_that_means_mpls_is_named_and_gets_no_packets(pair: Pair):
    """It advertises a label of its own, as freeRtr does: 102256, for packets of type 0x8847."""
    pair.right.kill()
    pair.right.altered = {"FARED_TEST_BIER_LABEL": "102256"}
    try:
        pair.right.start()
        wait_for(lambda: any(problems(pair.left)), 40, "a problem of the neighbor")
        assert set(problems(pair.left)) == {
            "it means MPLS (label 102256), this router sends BIER without MPLS"
        }
        assert reached(pair.left) == [LEFT_HOST, LEFT_ID]
        assert "means MPLS" in pair.left.cli("show", "bier").stdout
        refused = [r for r in pair.left.records() if r["event"] == "bier-neighbor-refused"]
        assert {r["interface"] for r in refused} == set(LINKS)
        pair.right.kill()
    finally:
        pair.right.altered = {}


def problems(daemon: Live) -> list[str]:
    """What is wrong with the neighbors that are routers."""
    return [n["problem"] for n in daemon.show("bier")["neighbors"] if n["neighbor"]]


def test_nothing_remains_after_a_clean_exit(pair: Pair):
    wait_for(lambda: bool(table(pair.right)), 40, "tables")
    pair.right.terminate()
    assert table(pair.right) == []
    assert not pair.right.complaints()


def test_a_process_without_bier_removes_the_table_of_the_former_one(pair: Pair):
    wait_for(lambda: bool(table(pair.right)), 40, "tables")
    pair.right.kill()
    assert table(pair.right)
    usual = pair.right.config
    try:
        pair.right.config = {key: value for key, value in usual.items() if key != "bier"}
        pair.right.start()
        wait_for(lambda: not table(pair.right), 40, "no table")
        pair.right.terminate()
    finally:
        pair.right.config = usual


def test_without_the_section_show_says_so(tmp_path: Path):
    """Only the view of one daemon is needed; it has no neighbor."""
    pair = Pair("bn", tmp_path)
    try:
        pair.left.start()
        assert pair.left.show("bier")["enabled"] is False
        assert "BIER does not run here" in pair.left.cli("show", "bier").stdout
        assert table(pair.left) == []
    finally:
        pair.close()


def test_frames_of_other_sub_domains_are_dropped_and_counted(pair: Pair):
    before = pair.left.show("bier")["packets"]["unknown"]
    with sender(pair.left.netns) as sock:
        assert sock.family == socket.AF_PACKET
        sock.send(frame(SUB_DOMAIN + 1, ALL, b"stray"))
    wait_for(lambda: pair.left.show("bier")["packets"]["unknown"] == before + 1, 40, "a count")


def test_with_php_hosts_get_the_payload_without_the_header(pair: Pair):
    """The host, at the other end of ``d0``, has joined a group and uses an ordinary socket."""
    group, port = "239.7.7.7", 7007
    usual = copy.deepcopy(pair.right.config)
    usual["bier"]["php"] = True
    pair.right.reload(usual)
    netns = pair.right.netns
    with netns.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear, sender(pair.left.netns) as sock:
        ear.setblocking(False)
        ear.bind(("", port))
        (link,) = json.loads(netns.ip("-json", "link", "show", "dx"))
        member = struct.pack("=4s4si", socket.inet_aton(group), bytes(4), link["ifindex"])
        ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        packet = bytes(dpkt_udp(group, port, b"payload"))

        def hears() -> bool:
            sock.send(frame(SUB_DOMAIN, 1 << RIGHT_HOST - 1, packet, proto=4))
            try:
                return ear.recv(100) == b"payload"
            except BlockingIOError:
                return False

        wait_for(hears, 40, "the payload")


def dpkt_udp(group: str, port: int, payload: bytes) -> dpkt.ip.IP:
    """An IPv4 packet to a group."""
    udp = dpkt.udp.UDP(sport=port, dport=port, data=payload, ulen=8 + len(payload))
    return dpkt.ip.IP(
        src=socket.inet_aton("10.0.91.9"),
        dst=socket.inet_aton(group),
        p=dpkt.ip.IP_PROTO_UDP,
        ttl=3,
        data=udp,
        len=28 + len(payload),
    )
