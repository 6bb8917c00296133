"""Prefixes that nobody knows any more leave the tables, however few UPDATEs come."""

from __future__ import annotations

from fared.core.ids import ipv4_prefix
from fared.core.streams import StreamReceived
from fared.extensions.sim.fabric import clos3
from fared.protocols.bgp.packet.codec import encode_message
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.messages import RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.router.events import To
from tests.bgp.fabrics import engine, neighbor, settings_of, speakers, started
from tests.bgp_rib.routers import attributes

SOME = tuple([ipv4_prefix(0x0B000000 + (at << 8), 24) for at in range(40)])


def test_withdrawn_prefixes_are_forgotten_within_a_minute():
    fabric = started(clos3(1, 2, builder=speakers()))
    table = engine(fabric, "L1").instance.ribs[4].table
    before = len(table)
    near = neighbor(fabric, "L1", "S1")
    (stream, _), *_ = near.session.reading()
    known = attributes(settings_of(fabric, "S1").local_as)
    group = RouteGroup(BgpNextHop(6, near.place.remote), SOME)
    for update in (Update(routes=(group,), attributes=known), Update(withdrawn=SOME)):
        data = b"".join(encode_message(update, Coding(four_octet_as=True)))
        fabric.network.input("L1", To("bgp", StreamReceived(stream, data)))
        fabric.network.run_for(1.0)
    assert len(table) == before + len(SOME)
    fabric.network.run_for(62.0)
    assert len(table) == before


def test_tables_that_are_never_decided_are_swept_after_an_update_for_each_prefix():
    fabric = started(clos3(1, 2, builder=speakers()))
    found = engine(fabric, "L1")
    table = found.instance.ribs[4].table
    near = neighbor(fabric, "L1", "S1")
    hop = BgpNextHop(6, near.place.remote)
    known = attributes(settings_of(fabric, "S1").local_as)
    table.announce(near.number, SOME, known, hop)
    table.withdraw(near.number, SOME)
    table.regroup(1000)
    table.announce(near.number, SOME[:1], known, hop)
    size = len(table)
    assert not table.settled
    found.instance.process.counters.lsdb["updates-received"] += 1000
    found._publish()
    assert len(table) == size
    found.instance.process.counters.lsdb["updates-received"] += 1000
    found._publish()
    assert len(table) == size - len(SOME) + 1
    assert table.number(SOME[0]) is not None
