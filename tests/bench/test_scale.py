"""The scripted fabric of ``scale``: what it sends is what routers of that fabric would send."""

import random
import struct
from itertools import pairwise

import pytest

from bench.neighbors import script as scale_script
from bench.neighbors.fabric import Fabric
from bench.neighbors.lsas import LsaContents, content, packet
from bench.neighbors.lsps import LspContents, csnp, entries_of, entry_of, psnp
from bench.neighbors.ospf import OspfNeighbor
from bench.neighbors.script import Script
from bench.scale import pages as scale_pages
from bench.scale.kernel import KernelRoutes
from bench.scale.pages import AT_FIRST, OF_README, recorded, tables, written
from bench.scale.report import rows_of
from fared.core.wire import Reader
from fared.paths.te.attributes import TeAttributes
from fared.protocols.isis.pdu.codec import checksum_ok, decode_pdu
from fared.protocols.isis.pdu.model import Csnp, Psnp
from fared.protocols.isis.pdu.tlvs import IsReachability, LspEntries, of_type
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.codec import decode_packet
from fared.protocols.ospf.packet.lsa import decode_lsa, lsa_checksum_ok
from fared.protocols.ospf.packet.packets import PacketType


def lsas() -> LsaContents:
    return LsaContents(Fabric(3, 5, te=True))


def lsps() -> LspContents:
    return LspContents(Fabric(3, 5, te=True))


def stored(contents: LsaContents | LspContents) -> list[bytes]:
    return list((contents.lsas if isinstance(contents, LsaContents) else contents.lsps).values())


def bandwidths(contents: LsaContents | LspContents, raw: bytes) -> list[TeAttributes]:
    if isinstance(contents, LsaContents):
        return [decode_body(decode_lsa(Reader(raw))).attributes]
    tlvs = of_type(decode_pdu(raw).tlvs, IsReachability)
    return [neighbor.attributes for tlv in tlvs for neighbor in tlv.neighbors]


class FakeNeighbor:
    def __init__(self, script: Script) -> None:
        self.script, self.bit = script, 1 << len(script.neighbors)
        self.heard_at = 0.0
        self.said = []
        self.queued = []
        script.neighbors.append(self)

    def say(self, body) -> None:
        self.said.append(body)

    def queue(self, bodies) -> None:
        self.queued.extend(bodies)


def test_an_update_of_shared_parts_is_a_correct_packet_of_each_neighbor():
    contents = lsas()
    (body,) = contents.packed(list(contents.lsas.values())[:7])
    for router in (0x0AFE0001, 0xFFFFFFFF, 1):
        found = decode_packet(packet(router, body))
        assert found.router_id == router
        assert [lsa.raw for lsa in found.body.lsas] == list(contents.lsas.values())[:7]


def test_requests_are_answered_with_the_lsas_of_the_database():
    contents = lsas()
    wanted = list(contents.lsas)[3:9]
    waiting = dict.fromkeys(contents.requested(b"".join([*wanted, bytes(12)])))
    found = decode_packet(packet(1, contents.answer(waiting))).body.lsas
    assert [lsa.raw for lsa in found] == [contents.lsas[key] for key in wanted]
    assert not waiting


def test_lsas_that_are_requested_again_before_they_were_sent_are_sent_once():
    contents = LsaContents(Fabric(8, 64, te=True))
    script = Script(contents, 1, 1, 0.001)
    packets = []
    neighbor = OspfNeighbor(script, contents, 2, packets.append)
    neighbor.silent = False
    request = packet(1, content(PacketType.LS_REQUEST, b"".join(contents.lsas)))
    for _ in range(3):
        neighbor.receive(request)
    while neighbor.pending:
        neighbor.push()
    sent = [lsa for raw in packets for lsa in decode_packet(raw).body.lsas]
    assert [lsa.raw for lsa in sent] == list(contents.lsas.values())


@pytest.mark.parametrize("make", [lsas, lsps])
def test_an_announcement_changes_one_available_bandwidth_and_is_newer(make):
    contents = make()
    known = dict(contents.lsas if isinstance(contents, LsaContents) else contents.lsps)
    identity = (lambda raw: raw[3:12]) if make is lsas else (lambda raw: raw[12:20])
    latest = {identity(raw): raw for raw in known.values()}
    for _ in range(20):
        raw = contents.announcement()
        before, latest[identity(raw)] = latest[identity(raw)], raw
        assert contents.is_newest(raw)
        assert not contents.is_newest(before)
        ends = zip(bandwidths(contents, before), bandwidths(contents, raw), strict=True)
        (changed,) = [(old, new) for old, new in ends if old != new]
        old, new = changed
        assert abs(old.available_bandwidth - new.available_bandwidth) > 0.03 * new.capacity
        assert new.available_bandwidth + new.utilized_bandwidth == pytest.approx(new.capacity)
        if make is lsas:
            assert lsa_checksum_ok(decode_lsa(Reader(raw)))
        else:
            assert checksum_ok(raw)


def test_an_address_with_the_bytes_of_a_sub_tlv_is_not_taken_for_one():
    """10.128.0.33 is 0a800021, and the header of the sub-TLV after it begins with 0004."""
    contents = LsaContents(Fabric(1, 18, te=True))
    for _ in contents._ends:
        raw = contents.announcement()
        before = bandwidths(contents, contents.fabric.lsas[decode_lsa(Reader(raw)).header.key].raw)
        (after,) = bandwidths(contents, raw)
        assert after.available_bandwidth != before[0].available_bandwidth


def test_sequence_numbers_pdus_decode_to_their_entries():
    contents = lsps()
    whole = [decode_pdu(raw) for raw in contents.csnps(7)]
    assert all(isinstance(pdu, Csnp) for pdu in whole)
    assert whole[0].start == 0
    assert whole[-1].end == 0xFFFFFFFFFFFFFFFF
    assert all(after.start == before.end + 1 for before, after in pairwise(whole))
    listed = [
        entry.lsp_id
        for pdu in whole
        for tlv in of_type(pdu.tlvs, LspEntries)
        for entry in tlv.entries
    ]
    assert listed == sorted(contents.lsps)
    entries = [entry_of(raw) for raw in contents.lsps.values()]
    (raw,) = psnp(7, entries)
    assert isinstance(decode_pdu(raw), Psnp)
    assert entries_of(raw, 17) == b"".join(entries)
    assert entries_of(csnp(7, 0, 9, entries), 33) == b"".join(entries)


def script(spread: float) -> tuple[Script, list[FakeNeighbor]]:
    made = Script(lsas(), 1, 1, spread)
    return made, [FakeNeighbor(made) for _ in range(4)]


def test_what_the_device_has_sent_to_a_neighbor_that_neighbor_does_not_send():
    made, neighbors = script(1.0)
    raws = [made.contents.announcement() for _ in range(2)]
    made.announce(raws, 100.0)
    last = next(n for n in neighbors if not n.said and n is made._waves[0]._order[-1])
    made.acknowledged(made.contents.instance(raws[0]), last.bit)
    assert made.turn(102.0)
    sent = [
        [lsa.raw for body in n.said for lsa in decode_packet(packet(1, body)).body.lsas]
        for n in neighbors
    ]
    assert sorted(map(len, sent)) == [1, 2, 2, 2]
    assert made.copies == 7
    for neighbor in neighbors:
        for raw in raws:
            made.acknowledged(made.contents.instance(raw), neighbor.bit)
    assert not made.sent


def test_what_the_device_sends_to_all_before_they_do_is_not_awaited():
    made, neighbors = script(1.0)
    raw = made.contents.announcement()
    made.announce([raw], 100.0)
    first = made._waves[0]._order[0]
    made.acknowledged(made.contents.instance(raw), first.bit)
    for neighbor in neighbors:
        if neighbor is not first:
            made.acknowledged(made.contents.instance(raw), neighbor.bit)
    assert not made.sent


def test_an_acknowledgment_counts_once_and_a_missing_one_is_followed_by_the_lsa_again():
    made, neighbors = script(0.0)
    raw = made.contents.announcement()
    made.announce([raw], random.Random(1).random())
    instance = made.contents.instance(raw)
    for neighbor in neighbors[1:]:
        assert made.acknowledged(instance, neighbor.bit)
        assert not made.acknowledged(instance, neighbor.bit)
    made.retransmit(50.0)
    assert [len(neighbor.queued) for neighbor in neighbors] == [1, 0, 0, 0]
    assert made.acknowledged(instance, neighbors[0].bit)
    made.retransmit(100.0)
    assert len(neighbors[0].queued) == 1


@pytest.mark.parametrize("make", [lsas, lsps])
def test_an_acknowledgment_of_a_later_instance_counts_for_those_before_it(make, monkeypatch):
    """Each in time or not by its own age."""
    now = 100.0
    monkeypatch.setattr(scale_script.time, "monotonic", lambda: now)
    made = Script(make(), 1, 1, 0.0)
    neighbors = [FakeNeighbor(made) for _ in range(3)]
    contents = made.contents
    identity = {contents.identity(contents.instance(raw)): None for raw in stored(contents)}
    assert len(identity) == len(stored(contents))
    first = contents.announcement()
    mine = contents.identity(contents.instance(first))
    made.announce([first], now)
    now = 100.9
    later = first
    while later is first or contents.identity(contents.instance(later)) != mine:
        later = contents.announcement()
    made.announce([later], now)
    now = 101.5
    for neighbor in neighbors[:2]:
        assert made.acknowledged(contents.instance(later), neighbor.bit)
    assert made.in_time == 2, "the first is too late"
    assert len(made.sent) == 2
    made.acknowledged(contents.instance(first), neighbors[2].bit)
    assert len(made.sent) == 1
    made.acknowledged(contents.instance(later), neighbors[2].bit)
    assert not made.sent


def test_a_case_that_failed_is_a_missed_goal():
    case = {"daemon": "frr", "protocol": "ospf", "spines": 64, "leaves": 512, "te": True}
    (joined, memory) = rows_of([{"case": case, "joined": 20.0, "memory": 3000.0, "rates": {}}])
    assert joined["met"] is False
    assert memory["ours"] is None


def at_rate(rate: str, protocol: str, **changed: float) -> dict[str, dict]:
    """Rows of a rate, by what they tell."""
    case = {"daemon": "fared", "protocol": protocol, "spines": 64, "leaves": 512, "te": True}
    figures = {"cpu": 51.0, "acknowledged": 100.0, "lag": 49.0, "lapse": 1.0, "lost": 0}
    figures |= {"script": 20.0, "growth": 0.5, "open": 0}
    found = {"case": case, "joined": 7.0, "memory": 170.0, "rates": {rate: figures | changed}}
    named = f"{rate}/s, "
    return {
        row["name"].partition(named)[2]: row for row in rows_of([found]) if named in row["name"]
    }


@pytest.mark.parametrize("protocol", ["ospf", "isis"])
def test_a_thousand_changes_a_second_have_goals_over_both_protocols(protocol):
    met = {what: row["met"] for what, row in at_rate("1000", protocol).items()}
    assert met == {"CPU": False, "acknowledged within 1 s": True, "loop held": True}


def test_an_overload_may_lose_nothing_and_no_memory():
    def met(**changed: float) -> list[bool]:
        return [row["met"] for row in at_rate("4000", "ospf", **changed).values()][2:]

    assert met(acknowledged=20.0) == [True, True, True]
    assert met(open=3, lost=1, growth=60.0) == [False, False, False]


def test_readme_and_page_show_the_results_of_one_recorded_run():
    found = recorded()
    for path, part in tables(found).items():
        assert written(path) == part, f"{path.name}: python -m bench scale --table, or record()"
    measured = {row["name"] for row in rows_of(found["results"])}
    assert measured >= {*OF_README, *AT_FIRST}


def test_a_new_run_replaces_both_tables_and_nothing_else(tmp_path, monkeypatch):
    pages = {name: tmp_path / name for name in ("README.md", "scale.md")}
    for name, path in pages.items():
        path.write_text(f"before {name}\n{scale_pages.BEGIN}old\n{scale_pages.END}\nafter\n")
    monkeypatch.setattr(scale_pages, "README", pages["README.md"])
    monkeypatch.setattr(scale_pages, "PAGE", pages["scale.md"])
    monkeypatch.setattr(scale_pages, "RECORDED", tmp_path / "results" / "scale.json")
    case = {"daemon": "fared", "protocol": "ospf", "te": True, "spines": 64, "leaves": 512}
    scale_pages.record(scale_pages.begin(), [{"case": case, "joined": 7.25, "memory": 172.0}])
    for name, path in pages.items():
        text = path.read_text()
        assert text.startswith(f"before {name}\n")
        assert text.endswith("\nafter\n")
        assert "7.25 s" in text
        assert "old" not in text


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def group(number: int, members: dict[int, int]) -> bytes:
    """A notification of a next-hop group: weights by next hop."""
    entries = b"".join(struct.pack("=IBxxx", hop, weight - 1) for hop, weight in members.items())
    body = bytes(8) + attribute(1, struct.pack("=I", number)) + attribute(2, entries)
    return struct.pack("=IHHII", 16 + len(body), 104, 0, 0, 0) + body


def route(network: int, via: int | dict[int, int], kind: int = 24) -> bytes:
    """A notification of a route over a next-hop object, or of weights by interface."""
    body = struct.pack("=BBBBBBBBI", 2, 24, 0, 0, 254, 0, 0, 0, 0)
    body += attribute(1, network.to_bytes(4, "big"))
    if isinstance(via, int):
        body += attribute(30, struct.pack("=I", via))
    else:
        hops = (struct.pack("=HBBi", 8, 0, weight - 1, at) for at, weight in via.items())
        body += attribute(9, b"".join(hops))
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def test_a_route_has_changed_if_its_next_hops_have_and_not_if_only_their_weights_have():
    class Notified:
        def __init__(self) -> None:
            self.waiting: list[bytes] = []

        def recv(self, _: int) -> bytes:
            if not self.waiting:
                raise BlockingIOError
            return self.waiting.pop(0)

        def setsockopt(self, *_: object) -> None: ...
        def bind(self, *_: object) -> None: ...
        def setblocking(self, *_: object) -> None: ...

    notified = Notified()
    kernel = KernelRoutes(notified)
    network = 100 << 24

    def changes(*messages: bytes) -> int:
        before = kernel.changes
        notified.waiting += messages
        kernel.read()
        return kernel.changes - before

    assert changes(group(1, {11: 1, 12: 1}), route(network, 1)) == 1
    assert kernel.width(network, 24) == 2
    assert changes(group(1, {11: 2, 12: 1})) == 0
    assert changes(group(2, {11: 1, 12: 5}), route(network, 2)) == 0
    assert changes(group(3, {11: 1}), route(network, 3)) == 1
    assert kernel.width(network, 24) == 1
    assert changes(group(3, {11: 1, 13: 1})) == 1
    assert changes(route(network, 13)) == 1
    assert kernel.width(network, 24) == 1
    assert changes(route(network, 13, kind=25)) == 1
    assert kernel.width(network, 24) == 0
    assert changes(route(network, {1: 1, 2: 1})) == 1
    assert kernel.width(network, 24) == 2
    assert changes(route(network, {1: 1, 2: 3})) == 0
    assert changes(route(network, {1: 1, 4: 1})) == 1  # as many, but not the same
