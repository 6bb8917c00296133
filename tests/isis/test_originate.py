"""Origination: TLVs, stable fragments, thresholds, overload, throttling."""

import pytest
from msgspec.structs import replace

from fared.core.ids import parse_dotted
from fared.core.links import InterfaceAddress, Link
from fared.protocols.igp.events import LinkChanged, LoadsMeasured, LogRecord, SettingsApplied
from fared.protocols.isis.adjacency.fsm import all_adjacencies
from fared.protocols.isis.circuit import Adjacency, AdjacencyState, Circuit
from fared.protocols.isis.ids import Level, LevelSet
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.origination.fragment import ALONE, Item, TlvKind, keyed
from fared.protocols.isis.origination.fragments import FragmentTable
from fared.protocols.isis.origination.originate import Originator
from fared.protocols.isis.pdu.codec import encode_pdu, entry_size
from fared.protocols.isis.pdu.tlvs import (
    Hostname,
    InterfaceAddresses,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    MultiTopology,
    ProtocolsSupported,
    TeRouterId,
    Topology,
    of_type,
)
from fared.protocols.isis.settings import AdvertiseSettings, IsisSettings
from tests.isis.net import (
    AREA,
    BOTH,
    FAST,
    FE80,
    TWO,
    Network,
    loopback,
    mac,
    node,
    pair,
    prefixes,
    system,
)


def neighbors(lsp) -> list[IsNeighbor]:
    """The entries of TLV 22."""
    return [n for tlv in of_type(lsp.tlvs, IsReachability) for n in tlv.neighbors]


@pytest.mark.rfc("ISO 10589 §9.8", "RFC 1195 §5.2")
def test_the_first_fragment_says_who_we_are():
    """Areas, protocols, hostname, TE router id, loopback addresses."""
    net = pair()
    net.settle()
    lsp = net.lsp(2, 1)
    assert of_type(lsp.tlvs, ProtocolsSupported)[0].nlpids == (0xCC, 0x8E)
    assert of_type(lsp.tlvs, Hostname)[0].name == "r1"
    assert of_type(lsp.tlvs, TeRouterId)[0].address == parse_dotted("10.255.0.1")
    ipv4, ipv6 = of_type(lsp.tlvs, InterfaceAddresses)
    assert (ipv4.family, ipv4.addresses) == (4, (parse_dotted("10.255.0.1"),))
    assert ipv6.family == 6
    assert (lsp.is_type, lsp.overload, lsp.attached) == (3, False, False)


@pytest.mark.rfc("RFC 5305 §3", "RFC 5307 §1.1", "RFC 8570 §4.5")
def test_a_link_is_announced_with_addresses_ids_and_bandwidths():
    """RFC 5305, 5307 and 8570: the attributes that weights depend on."""
    net = pair(speed=12.5e6)
    net.settle()
    (link,) = neighbors(net.lsp(2, 1))
    assert (link.neighbor, link.metric) == (2 << 8, 10)
    assert link.local_addresses == (parse_dotted("10.128.0.0"),)
    assert link.remote_addresses == (parse_dotted("10.128.0.1"),)
    assert (link.local_id, link.remote_id) == (2, 2)
    te = link.attributes
    assert te.max_bandwidth == te.max_reservable_bandwidth == te.residual_bandwidth == 12.5e6
    assert te.unreserved_bandwidth == (12.5e6,) * 8
    assert (te.available_bandwidth, te.utilized_bandwidth, te.te_metric) == (12.5e6, 0.0, 10)


def test_a_link_of_unknown_capacity_is_announced_without_bandwidths():
    """No bandwidth is assumed."""
    net = pair(speed=None)
    net.settle()
    (link,) = neighbors(net.lsp(2, 1))
    assert link.attributes.max_bandwidth is None
    assert link.attributes.te_metric == 10


@pytest.mark.rfc("RFC 5307 §1.1")
def test_a_link_without_ipv4_addresses_is_told_apart_by_its_ids():
    """RFC 5307 only; the address borrowed from a loopback is not one of the link."""
    net = pair(numbered=False)
    borrowed = InterfaceAddress(4, loopback(1).network, 32)
    link = net.port(1, 2, (borrowed,))
    net.link(1, link, FAST)
    net.settle()
    for of, at in ((1, 2), (2, 1)):
        (entry,) = neighbors(net.lsp(at, of))
        assert entry.local_addresses == ()
        assert (entry.local_id, entry.remote_id) == (2, 2)


@pytest.mark.rfc("RFC 5120 §7.2", "RFC 5120 §7.4")
def test_multi_topology_keeps_ipv6_apart():
    """RFC 5120: TLV 229, 222 and 237 with MT 2; TLVs 22 and 135 for IPv4."""
    net = Network()
    for number in (1, 2):
        net.add(number, multi_topology=True)
    net.join(1, 2)
    net.settle()
    lsp = net.lsp(2, 1)
    assert of_type(lsp.tlvs, MultiTopology)[0].topologies == (Topology(0), Topology(2))
    assert [tlv.topology for tlv in of_type(lsp.tlvs, IsReachability)] == [None, 2]
    reach = {tlv.family: tlv.topology for tlv in of_type(lsp.tlvs, IpReachability)}
    assert reach == {4: None, 6: 2}
    for family in (4, 6):
        assert net.blocks(2, family=family)[node(1)].neighbors.tolist() == [node(2)]
        assert len(net.local_links(2, family=family)) == 1


def test_multi_topology_can_be_switched_at_run_time():
    """IPv6 prefixes move from TLV 236 to 237, and none remains."""
    net = pair()
    net.settle()
    for number in (1, 2):
        changed = replace(net.nodes[number].settings, multi_topology=True)
        net.input(number, SettingsApplied(changed))
    net.settle()
    net.run(5)
    found = [(tlv.family, tlv.topology) for tlv in of_type(net.lsp(2, 1).tlvs, IpReachability)]
    assert sorted(found) == [(4, None), (6, 2)]
    assert len(net.local_links(2, family=6)) == 1


@pytest.mark.rfc("ISO 10589 §7.2.8.1")
def test_overload_keeps_transit_away():
    """The bit is in fragment 0; paths may end at the node, but not cross it."""
    net = pair()
    net.settle()
    net.input(1, SettingsApplied(replace(net.nodes[1].settings, overload=True)))
    net.run(1)
    assert net.lsp(2, 1).overload
    assert not net.blocks(2)[node(1)].transit
    net.input(1, SettingsApplied(replace(net.nodes[1].settings, overload=False)))
    net.run(3)
    assert net.blocks(2)[node(1)].transit


@pytest.mark.rfc("RFC 3277", "RFC 3787 §4")
def test_overload_on_start_up_ends_by_itself():
    """RFC 3277: no transit traffic until the router has converged."""
    net = Network()
    net.add(1, overload_on_startup=30.0)
    net.add(2)
    net.join(1, 2)
    net.settle()
    assert net.lsp(2, 1).overload
    assert net.nodes[1].engine.overloaded
    net.run(30)
    assert not net.lsp(2, 1).overload


@pytest.mark.rfc("RFC 5120 §4")
def test_overload_is_told_of_each_topology():
    """RFC 5120 §4: the bit of the header is that of topology 0 only."""
    net = Network()
    net.add(1, multi_topology=True, overload=True)
    net.add(2, multi_topology=True)
    net.join(1, 2)
    net.settle()
    assert of_type(net.lsp(2, 1).tlvs, MultiTopology)[0].topologies[1] == Topology(2, overload=True)
    assert not net.blocks(2)[node(1)].transit
    assert not net.blocks(2, family=6)[node(1)].transit


# TE thresholds


def announced(net: Network) -> float:
    (link,) = neighbors(net.lsp(2, 1))
    return link.attributes.available_bandwidth


@pytest.fixture
def loaded():
    """Two routers, 100 Mb/s, converged; the default thresholds (3 %)."""
    net = pair(speed=12.5e6)
    net.settle()
    return net


def test_less_bandwidth_is_told_at_once(loaded):
    """Until then other routers send too much."""
    loaded.input(1, LoadsMeasured({2: 2.5e6}))
    loaded.run(0.1)
    assert announced(loaded) == pytest.approx(10e6)


def test_small_changes_stay_local(loaded):
    """Below 3 % of the capacity nothing is flooded."""
    before = loaded.lsp(2, 1).sequence_number
    loaded.input(1, LoadsMeasured({2: 0.3e6}))
    loaded.run(5)
    assert loaded.lsp(2, 1).sequence_number == before


def test_more_bandwidth_may_wait(loaded):
    """The load ends: advertised a second after the last advertisement at the earliest."""
    loaded.input(1, LoadsMeasured({2: 2.5e6}))
    loaded.input(1, LoadsMeasured({2: 0.0}))
    loaded.run(0.5)
    assert announced(loaded) == pytest.approx(10e6)
    loaded.run(1.0)
    assert announced(loaded) == pytest.approx(12.5e6)


def test_a_load_that_is_no_longer_known_is_taken_back(loaded):
    """No load is advertised then, and weights depend on the capacity of the link."""
    loaded.input(1, LoadsMeasured({2: 2.5e6}))
    loaded.run(2)
    assert announced(loaded) == pytest.approx(10e6)
    loaded.input(1, LoadsMeasured({2: None}))
    loaded.run(2)
    (link,) = neighbors(loaded.lsp(2, 1))
    assert link.attributes.residual_bandwidth == pytest.approx(12.5e6)
    assert link.attributes.available_bandwidth is None
    assert link.attributes.utilized_bandwidth is None
    assert link.attributes.available == pytest.approx(12.5e6)


def test_a_changed_capacity_is_told_at_once(loaded):
    """A capacity is a property of the link, not load."""
    link, settings = loaded.nodes[1].links[2]
    loaded.link(1, replace(link, speed=6.25e6), settings)
    loaded.run(0.2)
    assert announced(loaded) == pytest.approx(6.25e6)
    assert loaded.local_links(1)[0].bandwidth == 6.25e6


def test_the_threshold_is_configurable():
    """With 50 %, a change by a fifth of the capacity is not advertised."""
    net = Network()
    net.add(1, advertise=AdvertiseSettings(threshold=0.5))
    net.add(2)
    net.join(1, 2)
    net.settle()
    net.input(1, LoadsMeasured({2: 2.5e6}))
    net.run(3)
    assert announced(net) == pytest.approx(12.5e6)


# Throttle


@pytest.mark.rfc("ISO 10589 §7.3.6")
def test_a_flapping_link_costs_a_bounded_number_of_lsps():
    """Forty flaps in four seconds cause a fraction of that number of LSPs."""
    net = Network()
    for number in (1, 2, 3):
        net.add(number)
    net.join(1, 2)
    net.join(2, 3)
    net.settle()
    before = net.lsp(3, 2).sequence_number
    link, settings = net.nodes[1].links[2]
    for _ in range(40):
        net.link(2, replace(net.nodes[2].links[2][0], speed=net.now * 1e6), settings)
        net.run(0.1)
    assert net.lsp(3, 2).sequence_number - before <= 9
    assert link.up


# Fragments: 300 links on one router


class Recorder:
    """A substitute for flooding that records the LSPs generated."""

    def __init__(self, instance):
        self.instance = instance
        self.generated: list = []

    def next_sequence(self, level, identifier):
        entry = self.instance.databases[level].get(identifier)
        return 1 if entry is None else entry.sequence_number + 1

    def install_own(self, level, lsp):
        from fared.protocols.isis.lsdb import StoredLsp

        raw = encode_pdu(lsp)
        assert len(raw) <= 1492
        entry = StoredLsp(
            lsp.lsp_id, lsp.sequence_number, 1, self.instance.process.now + 1200, raw, lsp, own=True
        )
        self.instance.databases[level].put(entry)
        self.generated.append(lsp)
        return entry

    def purge_own(self, level, identifier):
        entry = self.instance.databases[level].get(identifier)
        if entry is not None:
            self.instance.databases[level].remove(entry)
            self.generated.append(identifier)
        return entry


class Big:
    """An originator with many circuits, without the rest of the engine."""

    def __init__(self, links: int, **settings):
        self.instance = Instance(
            IsisSettings(system(1), (AREA,), levels=TWO, hostname="big", **settings), None
        )
        self.flooding = Recorder(self.instance)
        self.originator = Originator(self.instance, self.flooding)
        for index in range(2, links + 2):
            self.add(index)
        self.settle()

    def add(self, index: int, *, up: bool = True):
        base = parse_dotted("10.128.0.0") + 2 * index
        link = Link(
            index,
            f"eth{index}",
            up=True,
            mtu=1500,
            speed=50e9,
            addresses=(InterfaceAddress(4, base, 31),),
            hardware_address=mac(1, index),
        )
        circuit = Circuit(link, FAST, index % 255 + 1)
        circuit.up = True
        self.instance.circuits[index] = circuit
        if up:
            circuit.adjacency = Adjacency(
                circuit,
                system(1000 + index),
                mac(2, index),
                LevelSet.TWO,
                state=AdjacencyState.UP,
                ipv4=(base + 1,),
                ipv6=(FE80 | mac(2, index),),
                nlpids=(0xCC, 0x8E),
                extended_circuit_id=7,
            )
        self.changed(index)

    def changed(self, index: int):
        circuit = self.instance.circuits[index]
        self.originator.bandwidth_changed(circuit)
        self.originator.circuit_changed(circuit)

    def settle(self) -> list:
        """Advance the clock by a second; return the LSPs generated."""
        self.flooding.generated.clear()
        self.instance.process.now += 10.0
        self.originator.settle()
        return list(self.flooding.generated)

    def told(self) -> list[IsNeighbor]:
        return [
            n
            for entry in self.instance.databases[Level.TWO].ordered()
            for n in neighbors(entry.lsp)
        ]


@pytest.mark.rfc("ISO 10589 §7.3.4")
def test_three_hundred_links_fit_into_few_fragments():
    """Each is advertised once, in LSPs of at most 1492 bytes."""
    big = Big(300)
    fragments = big.instance.databases[Level.TWO].ordered()
    assert 20 <= len(fragments) <= 32
    assert sorted(n.neighbor >> 8 for n in big.told()) == [1002 + k for k in range(300)]


@pytest.mark.rfc("ISO 10589 §7.3.4")
@pytest.mark.parametrize("index", [2, 150, 301])
def test_one_changed_link_issues_one_fragment(index):
    """Capacity, metric, failure and recovery of a link: one LSP each."""
    big = Big(300)
    circuit = big.instance.circuits[index]
    circuit.link = replace(circuit.link, speed=25e9)
    big.changed(index)
    assert len(big.settle()) == 1
    circuit.settings = replace(circuit.settings, metric=77)
    big.changed(index)
    assert len(big.settle()) == 1
    adjacency, circuit.adjacency, circuit.up = circuit.adjacency, None, False
    big.changed(index)
    assert len(big.settle()) == 1
    circuit.adjacency, circuit.up = adjacency, True
    big.changed(index)
    assert len(big.settle()) == 1
    big.changed(index)
    assert big.settle() == []


@pytest.mark.rfc("ISO 10589 §7.3.4")
def test_entries_stay_where_they_are_when_others_go():
    """Half of the links fail: no other entry moves; when they recover, the gaps are filled."""
    big = Big(300)
    before = {n.neighbor: lsp for lsp, n in located(big)}
    for index in range(2, 302, 2):
        big.instance.circuits[index].adjacency = None
        big.changed(index)
    big.settle()
    left = {n.neighbor: lsp for lsp, n in located(big)}
    assert len(left) == 150
    assert all(before[neighbor] == lsp for neighbor, lsp in left.items())
    count = len(big.instance.databases[Level.TWO].entries)
    for index in range(2, 302, 2):
        big.add(index)
    big.settle()
    assert len(big.told()) == 300
    assert len(big.instance.databases[Level.TWO].entries) == count


def located(big: Big):
    return [
        (entry.lsp_id, n)
        for entry in big.instance.databases[Level.TWO].ordered()
        for n in neighbors(entry.lsp)
    ]


@pytest.mark.rfc("ISO 10589 §7.3.4")
def test_an_emptied_fragment_is_purged():
    """If all links of the last fragment fail, it is purged; fragment 0 always remains."""
    big = Big(60)
    for index in range(2, 62):
        big.instance.circuits[index].adjacency = None
        big.instance.circuits[index].up = False
        big.changed(index)
    big.settle()
    assert [entry.lsp_id & 0xFF for entry in big.instance.databases[Level.TWO].ordered()] == [0]


def test_authentication_leaves_room_for_itself():
    """With a key every fragment has less room."""
    from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey

    keys = (TimedKey(AuthKey(Algorithm.HMAC_SHA_512, 1, b"k")),)
    big = Big(100, lsp_authentication=((2, keys),))
    for entry in big.instance.databases[Level.TWO].ordered():
        assert len(entry.raw) <= 1492 - 69


def prefix_items(count: int):
    """Keys and items of many IPv6 prefixes."""
    from fared.core.ids import Prefix

    for number in range(count):
        prefix = Prefix(6, 0x20010DB8 << 96 | number, 128)
        reach = IpReach(prefix, 10)
        kind = TlvKind(6)
        yield (
            keyed(kind, (prefix.network, prefix.length)),
            Item(kind, reach, entry_size(reach), ALONE),
        )


def test_more_than_256_fragments_are_cut_off_the_same_way_every_time():
    """The entries left out depend on the entries, not on their order of arrival."""
    items = list(prefix_items(9000))
    tables = []
    for order in (items, items[::-1]):
        table = FragmentTable(600)
        for key, item in order:
            table.put(key, item)
        table.settle()
        tables.append(table)
    first, second = tables
    assert first.omitted == second.omitted > 0
    assert first.numbers() == list(range(256))
    assert [first.contents(n) for n in range(256)] == [second.contents(n) for n in range(256)]
    key, _ = items[0]
    first.remove(key)
    first.settle()
    assert first.omitted == second.omitted - 1


def test_a_header_that_grows_moves_entries_out_of_fragment_zero():
    """A long hostname must not make fragment 0 too large."""
    table = FragmentTable(300)
    table.set_header((Hostname("a"),), 3, 300)
    for key, item in prefix_items(30):
        table.put(key, item)
    table.settle()
    table.set_header((Hostname("a" * 200),), 202, 300)
    assert 0 in table.settle()
    total = sum(
        len(tlv.prefixes)
        for n in table.numbers()
        for tlv in of_type(table.contents(n), IpReachability)
    )
    assert total == 30
    zero = sum(
        entry_size(r) + 0 for t in of_type(table.contents(0), IpReachability) for r in t.prefixes
    )
    assert zero + 202 <= 300


def test_what_does_not_fit_is_logged():
    """The log shows that a router cannot advertise all entries."""
    big = Big(1, lsp_mtu=200)
    for number in range(3000):
        big.originator.leak(Level.TWO, *leaked(number))
    big.settle()
    (record,) = [o for o in big.instance.process.take_outputs() if isinstance(o, LogRecord)]
    assert record.event == "isis-lsp-full"
    assert record.fields["omitted"] > 0


def leaked(number: int):
    from fared.core.ids import Prefix

    prefix = Prefix(6, 0x20010DB8 << 96 | number, 128)
    return prefix, IpReach(prefix, 10)


def test_a_prefix_on_two_links_is_announced_once_at_the_lower_metric():
    """At the higher metric once the better link fails."""
    net = pair()
    shared = InterfaceAddress(4, parse_dotted("10.9.0.1"), 24)
    for ifindex, metric in ((8, 30), (9, 20)):
        link = Link(ifindex, f"host{ifindex}", up=True, mtu=1500, addresses=(shared,))
        net.link(1, link, replace(FAST, passive=True, metric=metric))
    net.settle()
    assert prefixes(net.blocks(2)[node(1)])["10.9.0.0/24"] == (20, "LEVEL_2")
    link, settings = net.nodes[1].links[9]
    net.input(1, LinkChanged(replace(link, up=False), settings))
    net.run(1)
    assert prefixes(net.blocks(2)[node(1)])["10.9.0.0/24"] == (30, "LEVEL_2")


def test_prefixes_of_a_link_are_suppressed_and_advertised_again_without_a_new_adjacency():
    """Prefixes of both families; those of loopbacks are always advertised."""
    net = pair()
    six = InterfaceAddress(6, 0x20010DB8_00000001 << 64 | 1, 64)
    link, settings = net.nodes[1].links[2]
    net.link(1, replace(link, addresses=(*link.addresses, six)), settings)
    net.change(1, 1, prefix_suppression=True)
    net.settle()
    on_link = {4: "10.128.0.0/31", 6: "2001:db8:0:1::/64"}
    loopbacks = {4: "10.255.0.1/32", 6: "2001:db8::1/128"}
    for suppressed in (False, True, False):
        net.change(1, 2, prefix_suppression=suppressed)
        net.run(10)
        for family, prefix in on_link.items():
            known = prefixes(net.blocks(2, family=family)[node(1)])
            assert (prefix in known) is not suppressed
            assert loopbacks[family] in known
    circuits = {circuit.name: circuit for circuit in net.instance(1).circuits.values()}
    assert [adjacency.flaps for adjacency in all_adjacencies(circuits["eth2"])] == [0]
    assert not circuits["lo"].prefix_suppression


def test_links_and_next_hops_do_not_depend_on_the_prefixes_of_a_link():
    """Next hops come from TLV 132 of hellos, links from sub-TLVs."""
    net = pair(settings=replace(FAST, prefix_suppression=True))
    net.settle()
    (entry,) = neighbors(net.lsp(2, 1))
    assert entry.local_addresses == (parse_dotted("10.128.0.0"),)
    (hop,) = net.local_links(1)
    assert (hop.gateway, hop.onlink) == (parse_dotted("10.128.0.1"), False)
    assert set(prefixes(net.blocks(2)[node(1)])) == {"10.255.0.1/32"}


@pytest.mark.rfc("ISO 10589 §7.3.7")
def test_circuits_belong_to_the_levels_they_are_configured_for():
    """A level-1 circuit of a level-1-2 router is not in its level-2 LSP."""
    net = Network()
    for number in (1, 2):
        net.add(number, levels=BOTH)
    net.join(1, 2, levels=LevelSet.ONE)
    net.settle(1)
    assert "10.128.0.0/31" in prefixes(net.blocks(1, 1)[node(1)])
    assert "10.128.0.0/31" not in prefixes(net.blocks(1, 2)[node(1)])
    assert net.blocks(1, 2)[node(1)].neighbors.tolist() == []
