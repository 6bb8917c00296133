"""Messages by neighbor and type, and the errors in them by reason."""

from __future__ import annotations

from fared.core.streams import StreamReceived
from fared.extensions.sim.fabric import clos3
from fared.protocols.bgp.counted import COUNTABLE
from fared.protocols.bgp.packet.framing import MARKER
from fared.protocols.igp.counters import SENT
from tests.bgp.fabrics import engine, neighbor, speakers, started


def fabric():
    return started(clos3(1, 2, builder=speakers()))


def test_what_one_end_sends_is_what_the_other_receives():
    running = fabric()
    running.network.run_for(60.0)
    near, far = (neighbor(running, *ends).counters for ends in (("L1", "S1"), ("S1", "L1")))
    assert near.sent == far.received
    assert near.received == far.sent
    assert near.sent["OPEN"] == 1
    assert near.sent["KEEPALIVE"] > 15
    assert near.sent["UPDATE"] == neighbor(running, "L1", "S1").sent
    assert near.sent.keys() | near.received.keys() <= set(COUNTABLE.types)


def test_a_session_that_is_cleared_counts_a_notification_and_another_open():
    running = fabric()
    session = neighbor(running, "L1", "S1").session
    session.stop("maintenance")
    session.start()
    running.network.run_until_quiet(60.0)
    near, far = (neighbor(running, *ends).counters for ends in (("L1", "S1"), ("S1", "L1")))
    assert (near.sent["NOTIFICATION"], far.received["NOTIFICATION"]) == (1, 1)


def test_totals_do_not_fall_when_counters_are_cleared_or_a_neighbor_goes():
    running = fabric()
    counted = engine(running, "S1").counters
    before = counted.packets
    assert before[SENT, "OPEN"] == 2
    counted.clear_interfaces()
    assert not neighbor(running, "S1", "L1").counters.sent
    running.network.set_link("S1", "L1", up=False)
    running.network.run_for(10.0)
    after = counted.packets
    assert all(after[key] >= before[key] for key in before)


def test_a_message_that_ends_the_session_is_counted_by_type_and_reason():
    running = fabric()
    one = neighbor(running, "S1", "L1")
    wrong_length = MARKER + (25).to_bytes(2, "big") + b"\2" + b"\0\xff\0\0\0\0"
    for message, rejected in ((wrong_length, ("UPDATE", "update")), (bytes(19), ("", "header"))):
        assert one.agreed is not None
        one.session.handle(StreamReceived(one.session._main.stream, message))
        running.network.run_for(10.0)
        assert one.counters.rejected[rejected] == 1
    assert engine(running, "S1").counters.errors == {"update": 1, "header": 1}
