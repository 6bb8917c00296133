"""A neighbor that originates, or forges, more LSPs than a database may hold (``max-lsps``)."""

from collections.abc import Iterable
from types import SimpleNamespace

from msgspec.structs import replace

from fared.core.ids import ipv4_prefix, isis_node
from fared.paths.ted.events import PrefixesUpdated, TedUpdated
from fared.protocols.igp.database_limit import RECHECK, Fullness, LimitSettings
from fared.protocols.igp.events import LimitsReset, LogRecord, PacketReceived, SettingsApplied
from fared.protocols.isis.adjacency.fsm import _count_flap
from fared.protocols.isis.ids import ALL_ISS, Level, lsp_id, system_of
from fared.protocols.isis.pdu.codec import encode_pdu
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import IpReach, IpReachability, ProtocolsSupported
from tests.igp.protocols import ISIS
from tests.isis.net import Network, mac, system

LIMIT = LimitSettings(most=100, of_originator=50)
FORGED = 1000


def row(limit: LimitSettings = LIMIT) -> Network:
    """3 - 2 - 1: router 1 has a limit, and forged LSPs come from the side of router 3."""
    net = Network()
    net.add(1, limit=limit)
    for ends in ((1, 2), (2, 3)):
        net.join(*ends)
    net.until(net.all_up)
    net.until(net.in_sync)
    return net


def forge(net: Network, systems: Iterable[int], *, fragments: int = 1, sequence: int = 1) -> None:
    """Router 2 receives LSPs as from router 3, and floods them to router 1."""
    source = mac(3, 2)
    for number in systems:
        for fragment in range(fragments):
            lsp = Lsp(2, lsp_id(number, 0, fragment), sequence, 1200)
            packet = PacketReceived(3, source, ALL_ISS, encode_pdu(lsp))
            net.input(2, packet)


def sizes(net: Network) -> list[int]:
    return [len(net.database(number)) for number in (1, 2, 3)]


def state(net: Network) -> Fullness:
    return net.nodes[1].engine.limits["level-2"].state


def many(count: int) -> range:
    return range(FORGED, FORGED + count)


def test_a_database_holds_no_more_than_its_limit_and_every_lsp_is_acknowledged():
    net = row()
    forge(net, many(400))
    net.run(10)
    assert sizes(net)[0] == LIMIT.most
    assert sizes(net)[1] == sizes(net)[2] > 400
    assert net.all_up()
    (full,) = [r for r in net.nodes[1].said(LogRecord) if r.event == "isis-database-full"]
    assert full.fields["limit"] == LIMIT.most
    waiting = ISIS.transmitters(net)[2].active(Level.TWO)
    assert not any(queue.pending or queue.unacknowledged for queue in waiting)


def test_in_a_full_database_lsps_are_updated():
    net = row()
    forge(net, many(400))
    net.run(5)
    known = [n for n in many(400) if lsp_id(n) in net.database(1)]
    forge(net, known, sequence=2)
    net.run(5)
    entries = net.nodes[1].engine.instance.databases[Level.TWO].entries
    assert {entries[lsp_id(n)].sequence_number for n in known} == {2}


def test_routers_on_a_path_from_here_come_in_beyond_the_limit():
    """Routers 4 and 5 join behind router 3, in whatever order their LSPs arrive."""
    net = row()
    forge(net, many(400))
    net.run(5)
    for ends in ((3, 4), (4, 5)):
        net.join(*ends)
    net.run(2 * RECHECK + 5)
    known = {system_of(identifier) for identifier in net.database(1)}
    assert {system(4), system(5)} <= known
    forge(net, [4], fragments=200)
    net.run(5)
    assert sizes(net)[0] <= LIMIT.most * 5 // 4


def test_a_system_has_a_limit_of_its_own():
    net = row(LimitSettings(1000, 50))
    forge(net, [FORGED], fragments=200)
    net.run(5)
    assert sum(system_of(one) == system(FORGED) for one in net.database(1)) == 50


def test_lsps_that_csnps_list_are_not_requested_from_a_full_database():
    net = Network()
    net.add(1, limit=LIMIT)
    net.join(2, 3)
    net.until(net.all_up)
    forge(net, many(400), fragments=1)
    net.run(5)
    net.join(1, 2)
    net.run(10)
    assert net.all_up()
    assert sizes(net)[0] <= LIMIT.most
    queues = ISIS.transmitters(net)[1].active(Level.TWO)
    assert not any(queue.requests for queue in queues)


def test_a_higher_limit_or_a_reset_brings_what_was_ignored_without_an_adjacency_lost():
    net = row()
    forge(net, many(400))
    net.run(5)
    settings = net.nodes[1].settings
    net.input(1, SettingsApplied(replace(settings, limit=LimitSettings(1000, 100))))
    net.run(RECHECK + 5)
    assert net.in_sync()
    assert state(net) is Fullness.ROOM

    net = row()
    forge(net, many(400))
    net.run(5)
    net.nodes[1].engine.instance.settings = replace(settings, limit=LimitSettings(1000, 100))
    net.input(1, LimitsReset())
    net.run(5)
    assert net.in_sync()


def prefixes(net: Network, number: int, count: int, sequence: int = 1) -> None:
    """Router 2 receives, as from router 3, an LSP of a system that lists so many prefixes."""
    listed = [IpReach(ipv4_prefix(0x0B000000 + number * 1000 + n, 32), 1) for n in range(count)]
    tlvs = tuple(IpReachability(4, tuple(listed[at : at + 20])) for at in range(0, count, 20))
    head = (ProtocolsSupported((0xCC,)),)
    for fragment in range(2):
        lsp = Lsp(2, lsp_id(number, 0, fragment), sequence, 1200, tlvs=tlvs if fragment else head)
        net.input(2, PacketReceived(3, mac(3, 2), ALL_ISS, encode_pdu(lsp)))


def used(net: Network, number: int) -> int:
    """How many prefixes of a system router 1 uses."""
    found: dict[object, object] = {}
    for _, output in net.nodes[1].outputs:
        if isinstance(output, (PrefixesUpdated, TedUpdated)) and output.node == isis_node(
            system(number)
        ):
            found.update(output.changes)
    return sum(item is not None for item in found.values())


def test_prefixes_have_a_limit_of_their_own_and_those_known_stay():
    net = Network()
    net.add(1, prefix_limit=LimitSettings(200, 120))
    for ends in ((1, 2), (2, 3)):
        net.join(*ends)
    net.until(net.all_up)
    net.until(net.in_sync)
    for number in (FORGED, FORGED + 1):
        prefixes(net, number, 160)
    net.run(2)
    limit = net.nodes[1].engine.prefix_limit
    first, second = used(net, FORGED), used(net, FORGED + 1)
    assert first == 120
    assert limit.entries <= 201, "one may be our own"
    assert 60 < second <= 80
    assert sizes(net)[0] == sizes(net)[1] == 3 + 2 * 2, "the database has all"
    (full,) = [r for r in net.nodes[1].said(LogRecord) if r.event == "isis-prefixes-full"]
    assert full.fields["limit"] == 200
    assert net.nodes[2].engine.prefix_limit.ignored == 0

    prefixes(net, FORGED, 0, sequence=2)
    net.run(RECHECK + 2)
    assert used(net, FORGED) == 0
    assert used(net, FORGED + 1) == 120
    assert net.all_up()


def test_ended_adjacencies_are_counted_for_the_last_64_systems():
    circuit = SimpleNamespace(flaps={}, broadcast=False)
    for number in range(1000):
        _count_flap(SimpleNamespace(flaps=0, circuit=circuit, system_id=number))
    assert circuit.flaps == {(number, 0): 1 for number in range(1000 - 64, 1000)}
