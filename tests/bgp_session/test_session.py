"""Two sessions on a virtual clock: they come up, exchange messages, and say why they go down."""

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import ipv4_prefix, parse_dotted
from fared.core.streams import (
    FROM_LINK,
    CloseStream,
    Connect,
    ReadStream,
    SendStream,
    StreamClosed,
    StreamId,
    StreamKey,
    StreamOpened,
    StreamReceived,
    StreamSent,
)
from fared.protocols.bgp.packet.capabilities import FourOctetAs, multiprotocol
from fared.protocols.bgp.packet.codec import (
    KEEPALIVE,
    decode_message,
    encode_message,
    encode_notification,
    encode_open,
)
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.messages import OpenMessage, RouteRefresh, Update
from fared.protocols.bgp.packet.notification import Fault, notification
from fared.protocols.bgp.session.connection import MOST_WAITING, PORTION
from fared.protocols.bgp.session.events import (
    RefreshRequested,
    RoomToSend,
    SessionDown,
    SessionEstablished,
    UpdateReceived,
)
from fared.protocols.bgp.session.fsm import BgpState
from tests.bgp_session.net import PEER, Pair, Speaker, settings

UPDATE = next(encode_message(Update((ipv4_prefix(0x0A000000, 24),))))


def pair(first=None, second=None, **options):
    mine = {"number": 65001, "identifier": "10.9.1.1", **(first or {})}
    theirs = {"number": 65002, "identifier": "10.9.1.2", **(second or {})}
    return Pair(Speaker(settings(**mine), 1), Speaker(settings(**theirs), 2), **options)


def agreed(speaker):
    return [one.agreed for one in speaker.told if isinstance(one, SessionEstablished)][-1]


def established():
    """A session that is up, and its stream; the neighbor is the test."""
    made = Speaker(settings())
    made.session.start()
    made.outputs()
    stream = StreamId(PEER, passive=False, number=1)
    made.tell(StreamOpened(stream, "", ""))
    made.tell(StreamReceived(stream, opening()))
    made.tell(StreamReceived(stream, KEEPALIVE))
    assert made.state is BgpState.ESTABLISHED
    return made, stream


def opening(number=65002, hold_time=9, identifier="10.9.1.2", capabilities=None):
    told = capabilities if capabilities is not None else (multiprotocol(4), FourOctetAs(number))
    return encode_open(
        OpenMessage(
            min(number, 23456) if number > 65535 else number,
            hold_time,
            parse_dotted(identifier),
            told,
        )
    )


def test_two_sessions_come_up_and_agree():
    net = pair(second={"number": 4_200_000_001, "families": (6,), "hold_time": 30})
    net.start()
    net.run(3.0)
    assert net.up
    found = agreed(net.ends["a"])
    assert (found.number, found.identifier) == (4_200_000_001, parse_dotted("10.9.1.2"))
    assert (found.families, found.hold_time, found.keepalive) == ((6,), 9, 3.0)
    assert (found.limit, found.four_octet_as, found.refresh) == (65535, True, True)
    assert not found.internal
    assert found.restart is None


@pytest.mark.rfc("RFC 4271 §6.8")
@pytest.mark.parametrize("higher", ["a", "b"])
@pytest.mark.parametrize("delay", [0.0, 0.001, 0.2, 0.7])
def test_of_two_connections_one_stays(higher, delay):
    """Whoever has the higher identifier, and however late connections and messages are."""
    ids = {"identifier": "10.9.1.9"}
    net = pair(**({"first": ids} if higher == "a" else {"second": ids}), delay=delay)
    net.start()
    net.run(12.0)
    assert net.up
    assert len(net._far) == 2
    a, b = (one.session for one in net.ends.values())
    assert a._second is b._second is None


@pytest.mark.rfc("RFC 4271 §6.8")
@pytest.mark.parametrize(("identifier", "passive"), [("10.9.1.0", False), ("10.9.1.2", True)])
def test_the_connection_of_the_higher_identifier_stays(identifier, passive):
    made = Speaker(settings())
    made.session.start()
    made.outputs()
    streams = [StreamId(PEER, passive=one, number=1) for one in (False, True)]
    for stream in streams:
        made.tell(StreamOpened(stream, "", ""))
        found = made.tell(StreamReceived(stream, opening(identifier=identifier)))
    closed = [one.stream for one in found if isinstance(one, CloseStream)]
    assert [one.passive for one in closed] == [not passive]
    (note,) = [one.data for one in found if isinstance(one, SendStream) if one.stream == closed[0]]
    assert decode_message(note).kind == Fault.CONNECTION_COLLISION_RESOLUTION.value
    made.tell(StreamReceived(streams[passive], KEEPALIVE))
    assert made.state is BgpState.ESTABLISHED


@pytest.mark.rfc("RFC 4271 §6.8")
@examples(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.sampled_from(("10.9.1.0", "10.9.1.9")),
    st.sampled_from((None, 120)),
    st.floats(0.0, 0.9),
    st.floats(0.0, 2.0),
)
def test_exactly_one_session_stays_whenever_both_connect(seed, theirs, restart_time, delay, later):
    """Also where a second connection would mean a restart."""
    options = {"restart_time": restart_time}
    net = pair(options, {"identifier": theirs, **options}, delay=delay, seed=seed)
    net.start("a")
    net.run(later)
    net.start("b")
    net.run(60.0)
    assert net.up
    assert len(net._far) == 2
    a, b = (one.session for one in net.ends.values())
    assert a._second is b._second is None
    flaps = [[one for one in end.told if isinstance(one, SessionDown)] for end in net.ends.values()]
    net.run(120.0)
    assert flaps == [
        [one for one in end.told if isinstance(one, SessionDown)] for end in net.ends.values()
    ]


@pytest.mark.rfc("RFC 8654 §4")
def test_long_messages_are_taken_from_a_neighbor_that_does_not_take_them():
    made, stream = established()
    assert made.session.coding.limit == 4096
    many = tuple(ipv4_prefix(0x0A000000 + (number << 8), 24) for number in range(2000))
    (long,) = encode_message(Update(many), Coding(limit=65535))
    assert len(long) > 4096
    made.tell(StreamReceived(stream, long))
    assert made.reasons == []
    (update,) = [one.update for one in made.told if isinstance(one, UpdateReceived)]
    assert update.withdrawn == many


@pytest.mark.rfc("RFC 4271 §4.2")
def test_a_neighbor_may_return_with_another_as_and_identifier():
    made, stream = established()
    made.tell(StreamClosed(stream, "connection reset by peer"))
    made.outputs()
    again = StreamId(PEER, passive=True, number=2)
    made.session.start()
    made.outputs()
    made.tell(StreamOpened(again, "", ""))
    made.tell(StreamReceived(again, opening(65009, identifier="10.9.1.77")))
    made.tell(StreamReceived(again, KEEPALIVE))
    assert made.state is BgpState.ESTABLISHED
    assert (agreed(made).number, agreed(made).identifier) == (65009, parse_dotted("10.9.1.77"))


@pytest.mark.rfc("RFC 4271 §6.8")
def test_an_established_session_stays():
    made, stream = established()
    late = StreamId(PEER, passive=True, number=5)
    found = made.tell(StreamOpened(late, "", ""))
    assert [one.stream for one in found] == [late, late]
    assert made.session.reads(stream)
    assert not made.session.reads(late)


@pytest.mark.rfc("RFC 4724 §4.2", "RFC 8538 §4")
def test_a_neighbor_that_restarts_may_replace_its_session():
    net = pair({"restart_time": 120}, {"restart_time": 120, "passive": True})
    net.start()
    net.run(2.0)
    assert net.up
    b = net.ends["b"]
    stream = StreamId(PEER, passive=True, number=9)
    b.tell(StreamOpened(stream, "", ""))
    b.tell(StreamReceived(stream, opening(65001, identifier="10.9.1.1")))
    downs = [one for one in b.told if isinstance(one, SessionDown)]
    assert [(one.was_up, one.keeps_routes) for one in downs] == [(True, True)]
    b.tell(StreamReceived(stream, KEEPALIVE))
    assert b.state is BgpState.ESTABLISHED


REFUSED = {
    "its AS is 65003, expected 65002": ({"remote_as": 65002}, {"number": 65003}, (2, 2)),
    "its AS is 65002, expected 65001": ({"remote_as": "internal"}, {}, (2, 2)),
    "its AS is 65001, as ours, expected another": ({}, {"number": 65001}, (2, 2)),
    "its AS is 0, which is reserved": ({}, {"number": 0}, (2, 2)),
    "its identifier is 0.0.0.0": ({}, {"identifier": "0.0.0.0"}, (2, 3)),
    "its identifier is ours": (
        {"remote_as": "internal"},
        {"number": 65001, "identifier": "10.9.1.1"},
        (2, 3),
    ),
    "its hold time is 2 s, which is less than 3 s": ({}, {"hold_time": 2}, (2, 6)),
    "it has no routes of IPv6": ({"families": (6,)}, {}, (2, 7)),
    "its BGP version is 3, not 4": ({}, {"version": 3}, (2, 1)),
}


@pytest.mark.rfc("RFC 4271 §6.2", "RFC 6286 §2.2", "RFC 5492 §5")
@pytest.mark.parametrize("reason", REFUSED)
def test_an_open_is_refused_with_a_reason(reason):
    ours, theirs, kind = REFUSED[reason]
    made = Speaker(settings(**ours))
    made.session.start()
    made.outputs()
    stream = StreamId(PEER, passive=False, number=1)
    made.tell(StreamOpened(stream, "", ""))
    version = theirs.pop("version", 4) if "version" in theirs else 4
    data = bytearray(opening(**theirs))
    data[19] = version
    found = made.tell(StreamReceived(stream, bytes(data)))
    assert decode_message(found[0].data).kind == kind
    assert isinstance(found[1], CloseStream)
    assert made.reasons == [reason]
    assert made.session.reason == reason


def test_an_external_neighbor_may_have_our_identifier():
    net = pair(second={"identifier": "10.9.1.1"})
    net.start()
    net.run(5.0)
    assert net.up


def test_hold_time_0_needs_no_keepalives():
    net = pair({"hold_time": 0})
    net.start()
    net.run(2.0)
    order = net._order
    net.run(600.0)
    assert net.up
    assert net._order == order


def test_keepalives_keep_it_up_and_silence_ends_it():
    net = pair()
    net.start()
    net.run(600.0)
    assert net.up
    assert net.ends["a"].reasons == []
    net.put = lambda *_: None  # nothing arrives any more
    net.run(9.1)
    assert net.ends["a"].reasons == ["nothing was heard of it for 9 s"]


def test_it_connects_again_with_jitter_and_later_after_errors():
    """Refused connections: once a second; an AS that differs: pauses that double to a minute."""
    lone = pair()
    lone.refused = {"b"}
    lone.start("a")
    lone.run(60.0)
    assert 60 <= lone.ends["a"].session._number <= 80
    assert lone.ends["a"].session.reason == "connection refused"
    wrong = pair({"remote_as": 65009}, {"passive": True})
    wrong.start()
    wrong.run(600.0)
    assert 10 <= len(wrong.ends["a"].reasons) <= 25
    assert set(wrong.ends["b"].reasons) == {
        "it closed the session: OPEN message error, bad peer as"
    }


@pytest.mark.rfc("RFC 9003 §2")
def test_an_administrator_shuts_down_with_a_text():
    net = pair()
    net.start()
    net.run(2.0)
    net.ends["a"].session.stop("new optics")
    net.perform("a")
    net.run(5.0)
    assert net.ends["a"].reasons == ["shut down here"]
    told = 'it closed the session: cease, administrative shutdown: "new optics"'
    assert net.ends["b"].reasons[0] == told
    assert net.ends["a"].state is BgpState.IDLE
    net.start("a")
    net.run(70.0)
    assert net.up


@pytest.mark.rfc("RFC 8538 §3")
def test_a_shutdown_is_a_hard_reset_if_routes_would_be_kept_otherwise():
    net = pair({"restart_time": 120}, {"restart_time": 120})
    net.start()
    net.run(2.0)
    net.ends["a"].session.end(Fault.MAXIMUM_NUMBER_OF_PREFIXES_REACHED, "it has 11 prefixes of 10")
    net.perform("a")
    net.run(0.1)
    (down,) = [one for one in net.ends["b"].told if isinstance(one, SessionDown)]
    assert "hard reset: cease, maximum number of prefixes reached" in down.reason
    assert not down.keeps_routes
    assert net.ends["a"].reasons == ["it has 11 prefixes of 10"]
    net.run(10.0)
    assert net.up
    net.lose()
    net.run(0.1)
    assert [one for one in net.ends["b"].told if isinstance(one, SessionDown)][-1].keeps_routes


@examples(max_examples=15)
@given(st.integers(0, 2**32), st.lists(st.floats(0.0, 4.0), min_size=1, max_size=8))
def test_it_comes_up_whenever_connections_are_lost(seed, times):
    net = pair(seed=seed, delay=0.01)
    net.start()
    for seconds in times:
        net.run(seconds)
        net.lose()
    net.run(130.0)
    assert net.up


def test_updates_and_refreshes_are_delivered():
    net = pair()
    net.start()
    net.run(2.0)
    session = net.ends["a"].session
    assert session.send(UPDATE)
    assert session.send(next(encode_message(RouteRefresh(1, 1))))
    net.perform("a")
    net.run(0.1)
    found = [
        one for one in net.ends["b"].told if isinstance(one, UpdateReceived | RefreshRequested)
    ]
    assert [str(one.update.withdrawn[0]) for one in found[:1]] == ["10.0.0.0/24"]
    assert found[1].refresh == RouteRefresh(1, 1)


def test_what_a_neighbor_sends_at_once_is_processed_in_portions():
    made, stream = established()
    made.tell(StreamReceived(stream, UPDATE * 1000))
    assert count(made) == PORTION
    assert made.process.timers.next_deadline() == made.process.now
    for _ in range(9):
        made.tick(made.process.now)
    assert count(made) == 1000


def count(made):
    return sum(isinstance(one, UpdateReceived) for one in made.told)


def test_it_tells_when_it_takes_no_more_bytes():
    made, stream = established()
    made.session.pause(paused=True)
    assert not made.session.reads(stream)
    made.tell(StreamReceived(stream, UPDATE * 20_000))
    assert count(made) == 0
    made.tick(20.0)  # the neighbor has been heard
    made.session.pause(paused=False)
    assert not made.session.reads(stream)
    for _ in range(200):
        made.tick(20.0)
    assert count(made) == 20_000
    assert made.session.reads(stream)


def test_while_nothing_is_read_the_hold_time_does_not_pass():
    made, stream = established()
    made.session.pause(paused=True)
    made.tell(StreamReceived(stream, UPDATE[:10]))
    made.tick(20.0)
    assert made.state is BgpState.ESTABLISHED
    made.session.pause(paused=False)
    made.tick(40.0)
    made.tick(41.0)
    assert made.state is BgpState.IDLE


def test_what_has_come_is_read_before_the_hold_time_is_over():
    """A router that has much to do may not have read it for a long time."""
    made, stream = established()
    look = ReadStream(stream, wanted=True)
    assert look in made.tick(30.0)
    made.tell(StreamReceived(stream, KEEPALIVE), 30.1)
    assert look not in made.tick(30.5)
    assert look in made.tick(38.2)
    made.tick(39.0)
    assert made.state is BgpState.ESTABLISHED
    made.tick(39.2)
    assert made.reasons == ["nothing was heard of it for 9 s"]


def test_it_queues_no_more_than_it_may_for_a_neighbor_that_does_not_read():
    made, stream = established()
    sent = 0
    for _ in range(100_000):
        if not made.session.send(UPDATE):
            break
        sent += len(UPDATE)
    assert sent < MOST_WAITING
    made.outputs()
    made.tell(StreamSent(stream, sent // 4))
    assert not [one for one in made.told if isinstance(one, RoomToSend)]
    made.tell(StreamSent(stream, sent // 2))
    assert [one for one in made.told if isinstance(one, RoomToSend)] == [RoomToSend(PEER)]
    assert made.session.send(UPDATE)


@pytest.mark.rfc("RFC 9687 §4")
def test_a_neighbor_that_reads_nothing_for_eight_minutes_is_left():
    net = pair()
    net.start()
    net.run(2.0)
    net.reading = False
    net.run(470.0)
    assert net.up
    net.run(20.0)
    assert "it has read nothing for 480 s" in net.ends["a"].reasons + net.ends["b"].reasons


def test_a_connect_carries_what_the_socket_needs():
    base = settings()
    transport = replace(base.transport, ttl=255, key=StreamKey(b"secret"), link="swp1")
    made = Speaker(replace(base, transport=transport))
    made.session.start()
    assert made.outputs() == [Connect(StreamId(PEER, passive=False, number=1), transport)]


@pytest.mark.rfc("RFC 7606 §2")
def test_a_malformed_update_resets_the_session_and_tells_why():
    made, stream = established()
    body = bytes.fromhex("0001" + "21" + "0000")
    bad = b"\xff" * 16 + (19 + len(body)).to_bytes(2, "big") + b"\2" + body
    found = made.tell(StreamReceived(stream, UPDATE + bad + UPDATE))
    assert decode_message(found[0].data).kind == Fault.INVALID_NETWORK_FIELD.value
    assert made.reasons == ["a message of it is malformed: IPv4 prefix of 33 bits"]
    assert count(made) == 1


@examples(max_examples=40)
@given(
    st.sampled_from(list(BgpState)[3:]),
    st.lists(
        st.binary(max_size=60)
        | st.sampled_from(
            (UPDATE, KEEPALIVE, opening(), encode_notification(notification(Fault.BFD_DOWN)))
        ),
        max_size=6,
    ),
)
def test_any_bytes_never_raise(state, pieces):
    made = Speaker(settings())
    made.session.start()
    made.outputs()
    stream = StreamId(PEER, passive=True, number=1)
    made.tell(StreamOpened(stream, "", ""))
    for step in (opening(), KEEPALIVE)[: state - BgpState.OPEN_SENT]:
        made.tell(StreamReceived(stream, step))
    for piece in pieces:
        made.tell(StreamReceived(stream, piece))
        made.tell(StreamReceived(stream, b"\xff" * 16 + piece))
        made.tick(made.process.now + 0.1)
    assert made.state in BgpState


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "no answer"),
        ({"key": StreamKey(b"secret")}, "no answer; a wrong key gets none"),
        ({"ttl": FROM_LINK}, "no answer; a TTL below 255 gets none"),
        (
            {"key": StreamKey(b"secret"), "ttl": FROM_LINK},
            "no answer; a wrong key or a TTL below 255 gets none",
        ),
    ],
)
def test_that_nobody_answers_is_said_with_what_gets_no_answer(options, reason):
    base = settings()
    speaker = Speaker(replace(base, transport=replace(base.transport, **options)))
    speaker.session.start()
    assert speaker.session.reason == ""
    speaker.tick(base.connect_retry)
    assert speaker.state is BgpState.CONNECT
    assert speaker.session.reason == reason
