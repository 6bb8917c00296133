"""A neighbor that originates, or forges, more LSAs than a database may hold (``max-lsas``)."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from fared.paths.ted.events import PrefixesUpdated, TedUpdated
from fared.protocols.igp.database_limit import MOST_MISSED, RECHECK, LimitSettings
from fared.protocols.igp.events import LimitsReset, LogRecord, SettingsApplied
from fared.protocols.ospf.adjacency.fsm import _count_flap
from fared.protocols.ospf.adjacency.hello import MAX_LAN_NEIGHBORS
from fared.protocols.ospf.flooding.limits import BYTES_OF_AN_LSA, MOST_LINK_LSAS
from fared.protocols.ospf.packet.bodies import RouterLink, RouterLinkType
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER
from fared.protocols.ospf.packet.packets import DdFlags, Hello, LsRequest, PacketBody
from fared.protocols.ospf.settings import NetworkType
from tests.ospf.harness import FAST, Network, Packet, router_id
from tests.ospf.scripted import ALL_SPF, THEIRS, E, Scripted, dd, make_lsa, router_lsa, update

LIMIT = LimitSettings(most=200, of_originator=150)


def victim(limit: LimitSettings = LIMIT) -> Scripted:
    return Scripted(limit=limit)


def forge(scripted: Scripted, count: int, first: int = 1000, **lsa) -> None:
    """LSAs of as many routers."""
    for at in range(first, first + count, 20):
        lsas = (make_lsa(router_id(at + i), **lsa) for i in range(min(20, first + count - at)))
        scripted.send(update(*lsas))


def stored(scripted: Scripted) -> int:
    return len(scripted.lsas())


def events(scripted: Scripted) -> list[str]:
    return [o.event for o in scripted.outputs if isinstance(o, LogRecord)]


def test_a_database_holds_no_more_than_its_limit_and_the_neighbor_stays_full():
    scripted = victim()
    scripted.to_full()
    forge(scripted, 5000)
    assert stored(scripted) == LIMIT.most
    assert scripted.state == "Full"
    assert events(scripted).count("ospf-database-full") == 1
    (limit, _) = scripted.engine.limits.values()
    own = sum(key.advertising_router == scripted.me for key in scripted.lsas())
    assert limit.ignored == 5000 - (LIMIT.most - own)


def test_what_is_ignored_is_acknowledged():
    scripted = victim()
    scripted.to_full()
    forge(scripted, 1000)
    acked = {header.key for body in scripted.acks() for header in body.lsa_headers}
    assert len(acked) == 1000


def test_in_a_full_database_lsas_are_updated_and_flushed_as_ever():
    scripted = victim()
    scripted.to_full()
    forge(scripted, 300)
    scripted.at(scripted.now + 2)
    forge(scripted, 100, seq=INITIAL_SEQUENCE_NUMBER + 1)
    known = [lsa.header for lsa, _ in scripted.lsas().values()]
    newer = [h for h in known if h.ls_sequence_number == INITIAL_SEQUENCE_NUMBER + 1]
    assert sum(h.advertising_router != scripted.me for h in newer) == 100
    forge(scripted, 50, seq=INITIAL_SEQUENCE_NUMBER + 1, age=3600)
    assert stored(scripted) == LIMIT.most - 50


def links(*far: int, kind: int = RouterLinkType.POINT_TO_POINT) -> tuple[RouterLink, ...]:
    return tuple(
        RouterLink(link_type=kind, link_id=router_id(one), link_data=0, metric=10) for one in far
    )


@pytest.mark.parametrize("kind", [RouterLinkType.POINT_TO_POINT, RouterLinkType.VIRTUAL])
def test_routers_on_a_path_from_here_come_in_beyond_the_limit(kind):
    """The neighbor, its neighbors, and theirs; routers that nobody lists do not."""
    scripted = victim()
    scripted.to_full()
    forge(scripted, 300)
    scripted.send(update(make_lsa(router_id(9), links=links(5, 11, 12))))
    scripted.at(scripted.now + 2)
    scripted.send(update(make_lsa(router_id(11), links=links(9, 13, kind=kind))))
    scripted.greet(scripted.me)
    scripted.at(scripted.now + 2)
    onward = make_lsa(router_id(13), links=links(11, kind=kind))
    scripted.send(update(onward, make_lsa(router_id(14))))
    known = {key.advertising_router for key in scripted.lsas()}
    assert {router_id(n) for n in (9, 11, 13)} <= known
    assert router_id(14) not in known
    for at in range(500):  # of a router on a path: no more than a quarter
        scripted.send(update(make_lsa(router_id(11), ls_type=3, lsid=at << 8, body=bytes(8))))
    assert stored(scripted) <= LIMIT.most * 5 // 4


class Liar:
    """Router 2 of a network, which only says what it is told, beside its hellos."""

    def __init__(self, net: Network) -> None:
        self.net = net
        self.router_id = router_id(2)
        (cable,) = [c for c in net.cables if {n for n, _ in c.ends} == {1, 2}]
        ends = dict(cable.ends)
        self.source = net.nodes[2].links[ends[2]][0].addresses[0].address
        self.victim = (1, ends[1])
        net.stop(2)

    def say(self, body: PacketBody) -> None:
        payload = encode_packet(self.router_id, 0, body)
        self.net.deliver(self.victim, Packet(self.source, ALL_SPF, payload, 1))

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            heard = Hello(0, 1, E, 1, FAST.router_dead_interval, 0, 0, (router_id(1),))
            self.say(heard)
            self.net.run(1.0)


def test_a_neighbor_that_invents_routers_on_itself_keeps_none_behind_another_out():
    """2 tells both ends of its links to 3,000 routers that are not there; 4 joins behind 3."""
    net = Network()
    net.add(1, limit=LIMIT)
    for number in (2, 3):
        net.join(1, number, FAST)
    net.until(lambda: net.all_full() and net.in_sync())
    liar, invented = Liar(net), range(1000, 4000)
    newer = INITIAL_SEQUENCE_NUMBER + 100
    liar.say(update(make_lsa(liar.router_id, newer, links=links(1, *invented))))
    liar.run(2.0)
    for at in range(1000, 4000, 500):
        for one in range(at, at + 500, 20):
            some = range(one, one + 20)
            liar.say(update(*(make_lsa(router_id(other), links=links(2)) for other in some)))
        liar.run(1.0)
    net.join(3, 4, FAST)
    liar.run(2.0 + 2 * RECHECK)
    assert router_lsa(router_id(4)) in net.database(1)
    assert LIMIT.most < len(net.database(1)) <= LIMIT.most * 5 // 4


def test_large_lsas_count_for_several_whether_new_or_grown():
    """Otherwise LSAs of 64 kB, which nobody needs, would take a hundred times the memory."""
    scripted = victim()
    scripted.to_full()
    large = 5 * BYTES_OF_AN_LSA
    for number in range(1000, 1120):
        scripted.send(update(make_lsa(router_id(number), ls_type=10, lsid=1, body=bytes(large))))
    area = next(iter(scripted.engine.instance.areas.values()))
    most = LIMIT.most * BYTES_OF_AN_LSA
    assert 0.9 * most < area.lsdb.size <= most
    assert stored(scripted) < 50
    assert events(scripted).count("ospf-database-full") == 1
    wait(scripted, 3 * RECHECK)
    assert events(scripted).count("ospf-database-full") == 1

    scripted = victim()
    scripted.to_full()
    forge(scripted, 150)
    scripted.at(scripted.now + 2)
    newer = {"seq": INITIAL_SEQUENCE_NUMBER + 1}
    for number in range(1000, 1120):
        grown = make_lsa(router_id(number), links=links(*range(2000, 2000 + large // 12)), **newer)
        scripted.send(update(grown))
    area = next(iter(scripted.engine.instance.areas.values()))
    assert area.lsdb.size <= most
    assert area.lsdb.size == sum(len(entry.raw) for entry in area.lsdb)
    assert scripted.state == "Full"


def test_lsas_of_the_neighbor_itself_grow_no_further_than_those_of_others():
    """Its router LSA alone is always accepted."""
    scripted = victim()
    scripted.to_full()
    large, theirs, newer = 5 * BYTES_OF_AN_LSA, router_id(9), INITIAL_SEQUENCE_NUMBER + 1
    for number in range(120):
        scripted.send(update(make_lsa(theirs, ls_type=10, lsid=number, body=bytes(8))))
    assert sum(key.advertising_router == theirs for key in scripted.lsas()) >= 120
    scripted.at(scripted.now + 2)
    for number in range(120):
        grown = make_lsa(theirs, ls_type=10, lsid=number, body=bytes(large), seq=newer)
        scripted.send(update(grown))
    area = next(iter(scripted.engine.instance.areas.values()))
    assert area.lsdb.size <= LIMIT.most * BYTES_OF_AN_LSA * 5 // 4
    router = make_lsa(theirs, links=links(*range(2000, 2000 + large // 12)), seq=newer)
    scripted.send(update(router))
    (held,) = [lsa for key, (lsa, _) in scripted.lsas().items() if key == router.header.key]
    assert held.header == router.header


def test_an_originator_has_a_limit_of_its_own():
    scripted = victim()
    scripted.to_full()
    for at in range(300):
        scripted.send(update(make_lsa(router_id(9), ls_type=3, lsid=at << 8, body=bytes(8))))
    found = [key for key in scripted.lsas() if key.advertising_router == router_id(9)]
    assert len(found) == LIMIT.of_originator


def test_a_described_database_larger_than_the_limit_is_not_requested_whole():
    """Hundreds of thousands of headers cost a request list of the limit."""
    scripted = victim()
    scripted.to_exchange()
    for sequence in range(1, 201):
        headers = [make_lsa(router_id(sequence * 50 + i)).header for i in range(50)]
        scripted.send(dd(DdFlags.M | DdFlags.MS, 1000 + sequence, *headers))
    assert len(scripted.neighbor.requests) <= LIMIT.most * 5 // 4
    scripted.send(dd(DdFlags.MS, 1201))
    assert scripted.state == "Loading"
    for _ in range(20):
        wanted = [key for body in scripted.got(LsRequest) for key in body.requests]
        scripted.send(update(*(make_lsa(key.advertising_router) for key in wanted)))
    assert scripted.state == "Full"
    assert stored(scripted) <= LIMIT.most + 1


def wait(scripted: Scripted, seconds: float) -> None:
    for _ in range(int(seconds)):
        scripted.at(scripted.now + 1)
        scripted.greet(scripted.me)


def asked(scripted: Scripted) -> set[int]:
    """The advertising routers of the LSAs that the engine has requested."""
    requests = scripted.got(LsRequest)
    return {key.advertising_router for body in requests for key in body.requests}


def test_when_there_is_room_again_what_was_ignored_is_requested():
    scripted = victim()
    scripted.to_full()
    forge(scripted, 300)
    scripted.send(update(*(make_lsa(router_id(1000 + n), age=3600) for n in range(100))))
    wait(scripted, RECHECK + 1)
    assert scripted.state == "Full"
    wanted = asked(scripted)
    assert len(wanted) > 100
    scripted.send(update(*(make_lsa(adv) for adv in sorted(wanted)[:50])))
    assert stored(scripted) == LIMIT.most - 50
    assert events(scripted)[-1] == "ospf-database-has-room"


def test_what_was_ignored_is_requested_when_its_originator_comes_onto_a_path():
    """The LSA of router 11 arrives before that of its neighbor 9."""
    scripted = victim()
    scripted.to_full()
    forge(scripted, 300)
    scripted.send(update(make_lsa(router_id(11), links=links(9))))
    assert router_id(11) not in {key.advertising_router for key in scripted.lsas()}
    scripted.send(update(make_lsa(router_id(9), links=links(5, 11))))
    wait(scripted, RECHECK + 1)
    assert asked(scripted) == {router_id(11)}


def test_after_more_than_can_be_remembered_the_neighbor_describes_its_database_anew():
    scripted = victim()
    scripted.to_full()
    forge(scripted, 300 + MOST_MISSED)
    scripted.send(update(*(make_lsa(router_id(1000 + n), age=3600) for n in range(100))))
    wait(scripted, RECHECK + 1)
    assert scripted.state == "ExStart"


@pytest.mark.parametrize("how", ["reset", "reload"])
def test_an_operator_makes_room_by_a_reset_or_a_higher_limit(how: str):
    scripted = victim()
    scripted.to_full()
    forge(scripted, 300)
    if how == "reset":
        scripted.handle(LimitsReset())
    else:
        settings = scripted.engine.instance.settings
        scripted.handle(SettingsApplied(replace(settings, limit=LimitSettings(9999, 9999))))
        wait(scripted, RECHECK + 1)
    assert len(asked(scripted)) > 100
    assert scripted.state == "Full"


def test_lsas_of_a_link_have_a_limit_of_their_own():
    scripted = victim()
    scripted.to_full()
    for at in range(2 * MOST_LINK_LSAS):
        scripted.send(update(make_lsa(router_id(9), ls_type=9, lsid=at + 1, body=bytes(4))))
    (interface,) = scripted.engine.instance.interfaces.values()
    assert len(interface.lsdb) == MOST_LINK_LSAS
    assert scripted.state == "Full"


def test_routers_with_different_limits_form_a_fabric_and_requests_for_ignored_lsas_end_nothing():
    """A router behind the limited one misses what that one ignores, and no adjacency ends."""
    net = Network()
    net.add(2, limit=LimitSettings(100, 100))
    for a, b in ((1, 2), (2, 3)):
        net.join(a, b)
    net.until(net.all_full)
    for at in range(300):
        lsa = make_lsa(router_id(1000 + at))
        engine = net.nodes[1].engine
        area = next(iter(engine.instance.areas.values()))
        engine._flooding.install_and_flood(area.lsdb, lsa.header.key, lsa.raw)
    net.transmit(net.nodes[1])
    net.run(30)
    assert net.all_full()
    sizes = [len(net.database(number)) for number in (1, 2, 3)]
    assert sizes[0] > 300
    assert sizes[1] <= 125
    assert sizes[2] == sizes[1]


def test_a_lan_has_at_most_256_neighbors_and_two_way_ones_stay():
    """Forged hellos from ever new sources replace each other."""
    lan = replace(FAST, network_type=NetworkType.BROADCAST)
    scripted = Scripted(settings=lan, length=22)
    mask = 0xFFFFFC00
    scripted.greet(scripted.me, network_mask=mask)
    for number in range(900):
        hello = scripted.hello(network_mask=mask)
        scripted.send(hello, peer=router_id(1000 + number), source=THEIRS + 1 + number)
    interface = next(iter(scripted.engine.instance.interfaces.values()))
    assert len(interface.neighbors) == MAX_LAN_NEIGHBORS
    assert scripted.neighbor.router_id == scripted.peer
    for number in range(900):
        hello = scripted.hello(scripted.me, network_mask=mask)
        scripted.send(hello, peer=router_id(1000 + number), source=THEIRS + 1 + number)
    assert len(interface.neighbors) == MAX_LAN_NEIGHBORS
    assert scripted.errors()["too-many-neighbors"] == 900 - (MAX_LAN_NEIGHBORS - 1)


def test_ended_adjacencies_are_counted_for_the_last_64_router_ids():
    interface = SimpleNamespace(flaps={})
    for number in range(1000):
        _count_flap(interface, router_id(number))
        _count_flap(interface, router_id(number))
    assert interface.flaps == {router_id(number): 2 for number in range(1000 - 64, 1000)}


def stubs(count: int, first: int = 0) -> tuple[RouterLink, ...]:
    stub = RouterLinkType.STUB
    return tuple(RouterLink(stub, 0x0B000000 + n, 0xFFFFFFFF, 1) for n in range(first, count))


def of_blocks(scripted: Scripted) -> dict[int, int]:
    """How many prefixes the latest block of each router has."""
    updates = [o for o in scripted.outputs if isinstance(o, TedUpdated)]
    return {int(o.node): len(o.block.prefixes) for o in updates if o.block is not None}


def test_prefixes_have_a_limit_of_their_own_and_those_known_stay():
    """Of a router LSA as of summaries; when another router withdraws its own, there is room."""
    scripted = Scripted(prefix_limit=LimitSettings(most=200, of_originator=150))
    scripted.to_full()
    for router in (9, 11):
        scripted.send(update(make_lsa(router_id(router), links=(*links(5), *stubs(180)))))
    before = of_blocks(scripted)
    assert before[router_id(9)] == 150
    assert before[router_id(11)] == 49, "one is our own"
    for at in range(100):
        mask = b"\xff" * 4 + (1).to_bytes(4, "big")
        lsa = make_lsa(router_id(12), ls_type=3, lsid=0x0C000000 + at, body=mask)
        scripted.send(update(lsa))
    assert stored(scripted) > 100
    changes = [o for o in scripted.outputs if isinstance(o, PrefixesUpdated)]
    assert not any(any(change.changes.values()) for change in changes)
    limit = scripted.engine.prefix_limit
    assert (limit.entries, limit.ignored) == (200, 30 + 131 + 100)
    assert "ospf-prefixes-full" in events(scripted)
    assert scripted.state == "Full"

    scripted.at(scripted.now + 2)
    newer = {"seq": INITIAL_SEQUENCE_NUMBER + 1}
    scripted.send(update(make_lsa(router_id(9), links=links(5), **newer)))
    wait(scripted, RECHECK + 1)
    assert of_blocks(scripted)[router_id(11)] == 150
    assert scripted.engine.prefix_limit.entries == 200, "49 of the summaries"
