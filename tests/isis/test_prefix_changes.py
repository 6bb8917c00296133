"""Changes of prefixes from LSPs to the TED give the same result as a new start."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import Prefix, parse_prefix
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.compare import same_block
from fared.paths.ted.events import PrefixesUpdated, TedUpdated
from fared.protocols.isis.ids import Level, LevelSet, LspId, lsp_id
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import (
    FLAG_READVERTISED,
    NLPID_IPV4,
    NLPID_IPV6,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    MultiTopology,
    NarrowIpReach,
    NarrowIpReachability,
    ProtocolsSupported,
    Tlv,
    Topology,
)
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.isis.ted import fragment_prefixes
from fared.protocols.isis.ted.builder import TedBuilder
from fared.protocols.isis.ted.router_prefixes import RouterPrefixes
from tests.isis.net import AREA, node, prefixes, system
from tests.ted.kinds import described, kinds

OWN, OTHER = 1, 2
BOTH = ProtocolsSupported((NLPID_IPV4, NLPID_IPV6))
IPV4 = [parse_prefix(f"10.1.{n}.0/24") for n in range(3)]
IPV6 = parse_prefix("2001:db8:1::/48")
TOO_FAR = 0xFE000001


class Follower:
    """A TED builder, and the result of its output so far."""

    def __init__(self, *, multi_topology: bool = False) -> None:
        chosen = IsisSettings(system(OWN), (AREA,), LevelSet.BOTH, multi_topology=multi_topology)
        self.instance = Instance(chosen, None)
        self.builder = TedBuilder(self.instance)
        self.said: list[TedUpdated | PrefixesUpdated] = []

    def put(self, lsp: Lsp | None, identifier: LspId, level: Level) -> None:
        """Install an LSP, or purge and remove it."""
        contents = lsp or Lsp(int(level), identifier, 1, 0)
        entry = StoredLsp(identifier, 1, 1, 9e9, b"", contents, purged=lsp is None)
        database = self.instance.databases[level]
        self.builder.lsp_changed(level, entry, database.put(entry))
        if lsp is None:
            database.remove(entry)
            self.builder.lsp_removed(level, entry)

    def flush(self) -> list[TedUpdated | PrefixesUpdated]:
        """The output of a flush, in which every change must be one."""
        self.builder.flush()
        news = self.instance.process.take_outputs()
        known = described(self.said)
        for update in news:
            block = known.get((update.area, update.node, update.family))
            before = () if block is None else block.prefixes
            for item in update.changes.values():
                assert item not in before
            assert isinstance(update, TedUpdated) or update.changes
        self.said += news
        return news

    def feed(self, *tlvs: Tlv, of: int = OTHER, fragment: int = 0, **header):
        """Install an LSP of level 2; return the output."""
        identifier = lsp_id(of, 0, fragment)
        self.put(Lsp(2, identifier, 1, 1200, tlvs=tlvs, **header), identifier, Level.TWO)
        return self.flush()


# Any sequence of changes


def wide(metric: int, **more) -> IpReachability:
    """A wide entry for the prefix of all tests."""
    return IpReachability(4, (IpReach(IPV4[0], metric, **more),))


def narrow(metric: int, **more) -> NarrowIpReachability:
    """A narrow entry (RFC 1195) for the same prefix."""
    external = more.get("metric_external", False)
    return NarrowIpReachability((NarrowIpReach(IPV4[0], metric, **more),), external=external)


def saying(*tlvs: Tlv) -> Lsp:
    """The contents of a fragment, without its LSP id and level."""
    return Lsp(0, LspId(0), 1, 1200, tlvs=tlvs)


_TLVS = (
    wide(1),
    wide(1, capacity=1e9),
    wide(1, capacity=2e9),
    wide(2),
    wide(1, down=True),
    wide(1, flags=FLAG_READVERTISED),
    wide(TOO_FAR),
    narrow(1),
    narrow(2),
    narrow(1, down=True),
    narrow(1, metric_external=True),
    replace(wide(TOO_FAR), topology=5),
    replace(wide(1), topology=5),
    IpReachability(4, (IpReach(IPV4[1], 5), IpReach(IPV4[1], 4), IpReach(IPV4[2], 4))),
    IpReachability(6, (IpReach(IPV6, 3),)),
    IpReachability(6, (IpReach(IPV6, 4),), 2),
    MultiTopology((Topology(0), Topology(2, attached=True))),
    IsReachability((IsNeighbor(7 << 8, 10),)),
)


@dataclass(frozen=True)
class Step:
    """A new instance of a fragment, None if purged; or only a change of ``follow``."""

    fragment: int
    lsp: Lsp | None
    flush: bool
    follow: bool | None = None
    """Whether attached bits are followed after this step."""


_LSPS = st.builds(
    Lsp,
    *map(st.just, (0, LspId(0), 1, 1200)),
    attached=st.booleans(),
    overload=st.sampled_from([False, False, True]),
    tlvs=st.builds(
        operator.add,
        st.sampled_from([(BOTH,), (BOTH,), (), (ProtocolsSupported((NLPID_IPV6,)),)]),
        st.lists(st.sampled_from(_TLVS), max_size=2).map(tuple),
    ),
)
_STEPS = st.builds(
    Step,
    st.integers(0, 2),
    st.one_of(st.none(), _LSPS, _LSPS, _LSPS),
    st.booleans(),
    st.sampled_from([None, None, None, None, True, False]),
)


def expected(known: dict[LspId, Lsp], of: int, level: Level, family: int, topology: int | None):
    """The prefixes of a router by RFC 5305, 5302 and 1195, from all its LSPs at once.

    Its own ones of TLV 130 come last: it redistributes them.
    """
    tlvs = [tlv for at, lsp in sorted(known.items()) if at >> 16 == of for tlv in lsp.tlvs]
    wide, narrow = [], []
    for tlv in tlvs:
        if isinstance(tlv, NarrowIpReachability) and family == 4:
            outside = of == OWN and tlv.external
            narrow += [(r, r.metric + 64 * r.metric_external, None, outside) for r in tlv.prefixes]
        elif isinstance(tlv, IpReachability) and tlv.family == family:
            wide += [
                (r, r.metric, r.capacity if tlv.topology == topology else -1, False)
                for r in tlv.prefixes
            ]

    def counts(reach, metric) -> bool:
        leaked = reach.down or bool(getattr(reach, "flags", None))
        return metric < TOO_FAR and not (of == OWN and leaked)

    barred = {r.prefix for r, metric, *_ in wide if not counts(r, metric)}
    wide = [entry for entry in wide if entry[2] != -1 and counts(*entry[:2])]
    barred |= {r.prefix for r, *_ in wide}
    found: dict[Prefix, tuple] = {}
    for reach, metric, capacity, outside in wide + [n for n in narrow if n[0].prefix not in barred]:
        down = level is Level.ONE and reach.down
        entry = (outside, down, metric), capacity
        if counts(reach, metric) and (
            reach.prefix not in found or entry[0] < found[reach.prefix][0]
        ):
            found[reach.prefix] = entry
    down_kind = "LEVEL_1_DOWN" if level is Level.ONE else "LEVEL_2"
    kinds_of = {(False, False): f"LEVEL_{level.value}", (False, True): down_kind}
    kinds_of[True, False] = f"LEVEL_{level.value}_REDISTRIBUTED"
    return {
        p: (metric, kinds_of[outside, down], known)
        for p, ((outside, down, metric), known) in found.items()
    }


@settings(max_examples=150)
@given(
    st.sampled_from([OTHER, OTHER, OWN]),
    st.sampled_from(Level),
    st.booleans(),
    _LSPS,
    st.lists(_STEPS, max_size=10),
)
@example(  # the wide entry is narrow now, and no longer the better one
    *(OTHER, Level.TWO, False, saying(BOTH, wide(1))),
    [Step(1, saying(wide(2)), flush=True), Step(0, saying(BOTH, narrow(1)), flush=True)],
)
@example(  # an empty first fragment exists nevertheless
    *(OTHER, Level.TWO, False, saying()),
    [
        Step(1, saying(BOTH, wide(1)), flush=True),
        Step(0, None, flush=True),
        Step(0, saying(), flush=True),
    ],
)
def test_any_sequence_of_fragments_ends_where_a_fresh_start_does(
    of, level, multi_topology, first, steps
):
    """Duplicates, leaked and narrow prefixes, purges, missing first fragments, attached bits."""
    follower, follow = Follower(multi_topology=multi_topology), True
    held: dict[LspId, Lsp] = {}
    for step in (Step(0, first, flush=False), *steps):
        identifier = lsp_id(of, 0, step.fragment)
        if step.follow is not None:
            follow = step.follow
            follower.builder.follow_attached(follow=follow)
        elif step.lsp is None:
            held.pop(identifier, None)
            follower.put(None, identifier, level)
        else:
            held[identifier] = replace(step.lsp, level=int(level), lsp_id=identifier)
            follower.put(held[identifier], identifier, level)
        if not step.flush:
            continue
        follower.flush()
        fresh = Follower(multi_topology=multi_topology)
        fresh.builder.follow_attached(follow=follow)
        for at in reversed(held):
            fresh.put(held[at], at, level)
        fresh.flush()
        mine, anew = described(follower.said), described(fresh.said)
        assert mine.keys() == anew.keys()
        for at, block in mine.items():
            assert set(block.prefixes) == set(anew[at].prefixes)
            assert same_block(replace(block, prefixes=()), replace(anew[at], prefixes=()))
            topology = 2 if at[2] == 6 and multi_topology else None
            advertised = [item for item in block.prefixes if item.prefix.length]
            assert {
                i.prefix: (i.metric, i.path_type.name, i.capacity) for i in advertised
            } == expected(held, of, level, at[2], topology)


# One change at a time


def test_a_changed_prefix_travels_alone():
    """The block of its router and its other prefixes are not emitted."""
    follower = Follower()
    reached = [IpReach(prefix, 10) for prefix in IPV4]
    link = IsReachability((IsNeighbor(7 << 8, 10),))
    first = follower.feed(BOTH, link, IpReachability(4, tuple(reached)))
    assert [type(update) for update in first] == [TedUpdated, TedUpdated]
    reached[1] = replace(reached[1], metric=20)
    (update,) = follower.feed(BOTH, link, IpReachability(4, tuple(reached)))
    assert isinstance(update, PrefixesUpdated)
    assert [item.metric for item in update.changes.values()] == [20]
    assert kinds(follower.said)[-1] is ChangeKind.LOSS
    (update,) = follower.feed(BOTH, link, IpReachability(4, tuple(reached[1:])))
    assert list(update.changes.values()) == [None]
    assert follower.feed(BOTH, link, IpReachability(4, tuple(reached[1:]))) == []


def test_a_prefix_of_two_fragments_stays_until_both_withdraw_it():
    """The better entry is used, and after its withdrawal the other one."""
    follower = Follower()
    follower.feed(BOTH)
    for fragment, metric in ((1, 20), (2, 10)):
        follower.feed(IpReachability(4, (IpReach(IPV4[0], metric),)), fragment=fragment)
    at = 2, node(OTHER), 4
    assert prefixes(described(follower.said)[at]) == {"10.1.0.0/24": (10, "LEVEL_2")}
    follower.feed(fragment=2)
    assert prefixes(described(follower.said)[at]) == {"10.1.0.0/24": (20, "LEVEL_2")}
    assert follower.feed(fragment=2) == []
    follower.feed(fragment=1)
    assert prefixes(described(follower.said)[at]) == {}


@pytest.mark.rfc("RFC 8405")
def test_a_lost_link_takes_its_network_along_and_is_no_loss_of_its_own():
    """The other end still advertises the prefix: the back-off of RFC 8405 is not used up."""
    follower = Follower()
    network = IpReachability(4, (IpReach(IPV4[0], 10),))
    follower.feed(BOTH, IsReachability((IsNeighbor(7 << 8, 10),)), network)
    lost = follower.feed(BOTH, IsReachability(()))
    assert [type(update) for update in lost] == [TedUpdated, TedUpdated]
    assert kinds(follower.said)[-2:] == [ChangeKind.DROPPED, ChangeKind.DROPPED]


@pytest.mark.parametrize("held", [10, 250])
def test_one_changed_prefix_is_looked_up_alone_however_many_fragments_are_held(held, monkeypatch):
    looked_up: list[Prefix] = []
    real = RouterPrefixes._best

    def counted(self, at, prefix):
        looked_up.append(prefix)
        return real(self, at, prefix)

    follower = Follower()
    for number in range(held):
        reached = [IpReach(Prefix(4, (20 << 24) + (number * 9 + n << 8), 24), 10) for n in range(9)]
        lsp = Lsp(2, lsp_id(OTHER, 0, number), 1, 9, tlvs=(BOTH, IpReachability(4, tuple(reached))))
        follower.put(lsp, lsp.lsp_id, Level.TWO)
    follower.flush()
    monkeypatch.setattr(RouterPrefixes, "_best", counted)
    monkeypatch.setattr("fared.protocols.isis.ted.builder.build", None)  # no block is built again
    reached[0] = replace(reached[0], metric=11)
    (update,) = follower.feed(BOTH, IpReachability(4, tuple(reached)), fragment=held - 1)
    assert list(update.changes) == [reached[0].prefix]
    assert set(looked_up) == {reached[0].prefix}


def test_of_a_changed_fragment_only_the_tlvs_that_differ_are_read(monkeypatch):
    """Unchanged TLVs are the same objects, as the codec returns them for known bytes."""
    read: list[Prefix] = []
    real = fragment_prefixes._reachability

    def counted(reach, *args, **more):
        read.append(reach.prefix)
        return real(reach, *args, **more)

    monkeypatch.setattr(fragment_prefixes, "_reachability", counted)
    follower = Follower()
    kept = IpReachability(4, tuple(IpReach(prefix, 10) for prefix in IPV4[:2]))
    follower.feed(BOTH, kept, IpReachability(4, (IpReach(IPV4[2], 10),)))
    assert read == IPV4
    (update,) = follower.feed(BOTH, kept, IpReachability(4, (IpReach(IPV4[2], 20),)))
    assert read == [*IPV4, IPV4[2]]
    assert [item.prefix for item in update.changes.values()] == [IPV4[2]]
