"""Sessions on a virtual clock: states, timers, Poll Sequences, detection, lateness."""

import itertools
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.bfd import SessionSettings, Sha1Key
from fared.protocols.bfd.messages import SessionKey
from fared.protocols.bfd.packet import (
    ControlPacket,
    Diagnostic,
    State,
    decode_packet,
    encode_packet,
)
from fared.protocols.bfd.session import BfdSession
from tests.bfd.wire import FAST, USUAL, A, B, Wire, up

KEY = Sha1Key(1, b"fabric secret")


def scripted(settings=USUAL):
    """An end with one session, and a function that delivers packets of a scripted neighbor."""
    wire = Wire()
    session = wire.a.open(B, settings)

    def deliver(state, **fields):
        values = {"your_discriminator": session.local_discr, "detect_mult": 3} | fields
        packet = ControlPacket(
            state=state,
            my_discriminator=77,
            desired_min_tx=values.pop("desired_min_tx", 300_000),
            required_min_rx=values.pop("required_min_rx", 300_000),
            **values,
        )
        wire.a.sessions.receive(1, B, encode_packet(packet), wire.now)

    return wire, session, deliver


# -- states


@pytest.mark.rfc("RFC 5880 §6.2")
@pytest.mark.parametrize(
    ("before", "received", "after"),
    [
        # RFC 5880 §6.2, the diagram
        ("DOWN", "DOWN", "INIT"),
        ("DOWN", "INIT", "UP"),
        ("DOWN", "UP", "DOWN"),
        ("DOWN", "ADMIN_DOWN", "DOWN"),
        ("INIT", "DOWN", "INIT"),
        ("INIT", "INIT", "UP"),
        ("INIT", "UP", "UP"),
        ("INIT", "ADMIN_DOWN", "DOWN"),
        ("UP", "DOWN", "DOWN"),
        ("UP", "INIT", "UP"),
        ("UP", "UP", "UP"),
        ("UP", "ADMIN_DOWN", "DOWN"),
    ],
)
def test_the_state_follows_the_diagram_of_the_rfc(before, received, after):
    _, session, deliver = scripted()
    for state in {"DOWN": [], "INIT": [State.DOWN], "UP": [State.DOWN, State.UP]}[before]:
        deliver(state)
    assert session.state is State[before]
    deliver(State[received])
    assert session.state is State[after]


STEPS = st.lists(
    st.tuples(
        st.sampled_from([State.UP, State.UP, State.UP, State.INIT, State.DOWN, State.ADMIN_DOWN]),
        st.sampled_from(
            [{}, {}, {"poll": True}, {"final": True}, {"detect_mult": 5}, {"required_min_rx": 0}]
        ),
        st.integers(1, 3),
        st.sampled_from([0.1, 0.3, 2.0]),
    ),
    max_size=12,
)


@pytest.mark.rfc("RFC 5880 §6.8.6")
@given(STEPS)
def test_a_repeated_packet_has_the_effect_of_one_that_is_decoded(steps):
    def told() -> list[object]:
        wire, session, deliver = scripted()
        deliver(State.DOWN)
        for state, fields, times, seconds in steps:
            for _ in range(times):
                deliver(state, **fields)
                wire.run(seconds)
        return [session.state, session.counters, wire.a.sent, wire.a.reports, wire.a.logged]

    short = told()
    never = property(lambda _: None, lambda *_: None)
    with patch.object(BfdSession, "settled", never, create=True):
        assert short == told()


def test_two_ends_come_up_without_waiting_for_the_slow_interval():
    wire = Wire()
    wire.a.open(B, FAST)
    wire.b.open(A, FAST)
    wire.until(lambda: wire.a.session(B).state is wire.b.session(A).state is State.UP, 0.02)


@pytest.mark.rfc("RFC 5880 §6.8.6", "RFC 5881 §3")
def test_packets_without_our_discriminator_belong_to_the_neighbor_of_their_link():
    wire, session, _ = scripted()
    packet = ControlPacket(State.DOWN, 77, 0, 3, 1_000_000, 300_000)
    wire.a.sessions.receive(2, B, encode_packet(packet), wire.now)
    wire.a.sessions.receive(1, b"\x0a\0\0\x09", encode_packet(packet), wire.now)
    assert session.state is State.DOWN
    assert wire.a.sessions.counters == {"no-session": 2}
    wire.a.sessions.receive(1, B, encode_packet(packet), wire.now)
    assert session.state is State.INIT


def test_packets_from_another_link_do_not_reach_a_session():
    wire = up()
    session = wire.a.session(B)
    payload = session.settled
    received = session.counters.received
    wire.a.sessions.receive(2, B, payload, wire.now)
    assert session.counters.received == received
    assert wire.a.logged == ["no-session"]


def test_packets_that_come_before_their_session_are_logged_only_if_they_go_on():
    """The neighbor may begin before we have its hello, or end after we have lost it."""
    wire = Wire()
    packet = ControlPacket(State.DOWN, 77, 0, 3, 1_000_000, 300_000)
    for second in range(12):
        wire.a.sessions.receive(1, B, encode_packet(packet), float(second))
        assert wire.a.logged == ([] if second < 10 else ["no-session"])


def test_malformed_packets_are_counted_and_logged_once():
    wire, _, _ = scripted()
    for _ in range(5):
        wire.a.sessions.receive(1, B, b"nonsense", wire.now)
    assert wire.a.sessions.counters == {"truncated": 5}
    assert wire.a.logged == ["truncated"]


# -- intervals


@pytest.mark.rfc("RFC 5880 §6.8.7")
def test_packets_leave_at_three_quarters_to_the_whole_of_the_interval():
    wire = up()
    begin = len(wire.a.sent)
    wire.run(60.0)
    times = [at for at, _ in wire.a.sent[begin:]]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert 0.225 <= min(gaps) < 0.235
    assert 0.290 < max(gaps) <= 0.3


@pytest.mark.rfc("RFC 5880 §6.8.7")
def test_with_a_multiplier_of_one_packets_are_at_least_a_tenth_early():
    wire = up(replace(USUAL, multiplier=1))
    begin = len(wire.a.sent)
    wire.run(60.0)
    times = [at for at, _ in wire.a.sent[begin:]]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert max(gaps) <= 0.27
    assert not wire.a.downs()


@pytest.mark.rfc("RFC 5880 §6.8.3")
@pytest.mark.rfc("RFC 5880 §4.1")
def test_the_c_bit_of_the_neighbor_is_known():
    _, session, deliver = scripted()
    for independent in (True, False):
        deliver(State.DOWN, control_plane_independent=independent)
        assert session.remote_independent is independent


def test_until_a_session_is_up_it_sends_once_a_second():
    wire, _, _ = scripted(FAST)
    wire.run(20.0)
    assert 20 <= len(wire.a.sent) <= 28
    assert all(packet.desired_min_tx == 1_000_000 for _, packet in wire.a.sent)


@pytest.mark.rfc("RFC 5880 §6.8.7")
def test_each_end_sends_as_slowly_as_the_other_can_receive():
    wire = up(FAST, SessionSettings(50_000, 400_000, 3))
    begin = len(wire.a.sent)
    wire.run(10.0)
    assert 25 <= len(wire.a.sent) - begin <= 34
    # RFC 5880 §6.8.4: the neighbor's multiplier, and the greater of the two intervals
    assert wire.b.session(A).detection_time == pytest.approx(1.2)
    assert wire.a.session(B).detection_time == pytest.approx(0.15)


@pytest.mark.rfc("RFC 5880 §6.8.7")
def test_a_neighbor_that_wants_no_packets_gets_none():
    wire, _, deliver = scripted()
    deliver(State.DOWN)
    deliver(State.UP, required_min_rx=0)
    wire.run(0.8)
    assert len(wire.a.sent) == 3
    deliver(State.UP, required_min_rx=300_000)
    wire.run(0.5)
    assert len(wire.a.sent) > 3


@pytest.mark.rfc("RFC 5880 §6.6")
def test_a_neighbor_in_demand_mode_gets_no_periodic_packets():
    wire, _, deliver = scripted()
    deliver(State.DOWN)
    deliver(State.UP, final=True)
    deliver(State.UP, demand=True, final=True, detect_mult=50)
    wire.run(0.3)
    begin = len(wire.a.sent)
    wire.run(5.0)
    assert len(wire.a.sent) == begin


# -- Poll Sequences


@pytest.mark.rfc("RFC 5880 §6.5")
def test_a_poll_is_answered_at_once():
    wire, _, deliver = scripted()
    deliver(State.DOWN)
    begin = len(wire.a.sent)
    deliver(State.DOWN, poll=True)
    assert [packet.final for _, packet in wire.a.sent[begin:]] == [True]


@pytest.mark.rfc("RFC 5880 §6.5")
def test_coming_up_polls_until_the_neighbor_knows_the_interval():
    wire = up()
    for end in (wire.a, wire.b):
        polls = [packet.poll for _, packet in end.sent]
        assert any(polls)
        assert not polls[-1]
    assert wire.a.session(B).remote_min_tx == 300_000
    assert wire.a.session(B).detection_time == pytest.approx(0.9)


@pytest.mark.rfc("RFC 5880 §6.8.3")
def test_a_longer_interval_is_used_when_the_poll_sequence_ends():
    wire = up(FAST)
    slow = SessionSettings(400_000, 400_000, 3)
    wire.a.passes = lambda packet: not packet.final
    wire.b.passes = lambda packet: not packet.final
    session = wire.a.open(B, slow)
    assert wire.a.sent[-1][1].poll
    wire.run(0.12)
    # RFC 5880 §6.8.3: until then the neighbor expects the former interval
    assert session.transmit_interval == pytest.approx(0.05)
    wire.b.passes = wire.a.passes = lambda _: True
    wire.run(1.0)
    assert session.transmit_interval == pytest.approx(0.4)
    assert not wire.a.downs() + wire.b.downs()


@pytest.mark.rfc("RFC 5880 §6.8.3")
def test_a_shorter_receive_interval_is_used_when_the_poll_sequence_ends():
    wire = up()
    wire.b.passes = lambda packet: not packet.final
    session = wire.a.open(B, FAST)
    assert session.required_min_rx == 300_000
    wire.b.passes = lambda _: True
    wire.run(1.0)
    assert session.required_min_rx == 50_000
    assert not wire.a.downs() + wire.b.downs()


def test_settings_changed_during_a_poll_sequence_get_one_of_their_own():
    wire = up()
    session = wire.a.open(B, FAST)
    wire.a.open(B, SessionSettings(400_000, 100_000, 5))
    wire.run(2.0)
    assert (session.desired_min_tx, session.required_min_rx) == (400_000, 100_000)
    assert wire.b.session(A).detection_time == pytest.approx(2.0)
    assert not wire.a.downs() + wire.b.downs()


# -- detection


@pytest.mark.rfc("RFC 5880 §6.8.4")
@pytest.mark.parametrize(("settings", "within"), [(USUAL, 0.9), (FAST, 0.15)])
def test_silence_is_detected_within_the_detection_time(settings, within):
    wire = up(settings)
    wire.b.passes = lambda _: False
    begin = wire.now
    wire.until(lambda: wire.a.session(B).state is State.DOWN, 1.0)
    assert within * 0.6 < wire.now - begin <= within + 0.001
    assert wire.a.session(B).diagnostic == Diagnostic.CONTROL_DETECTION_TIME_EXPIRED
    # the other direction still works, and tells the neighbor
    wire.run(0.01)
    assert wire.b.session(A).state is State.DOWN
    assert wire.b.session(A).diagnostic == Diagnostic.NEIGHBOR_SIGNALED_DOWN
    assert wire.b.session(A).remote_diagnostic == 1


def test_a_session_comes_back_when_packets_do():
    wire = up(FAST)
    wire.b.passes = lambda _: False
    wire.run(5.0)
    wire.b.passes = lambda _: True
    wire.until(lambda: wire.a.session(B).state is State.UP, 1.5)


def test_two_lost_packets_of_three_are_no_failure():
    wire = up(FAST)
    counts = iter(range(10**6))
    wire.b.passes = lambda packet: packet.final or next(counts) % 3 == 0
    wire.run(60.0)
    assert not wire.a.downs() + wire.b.downs()


def test_a_neighbor_that_was_silent_is_forgotten():
    wire = up(FAST)
    wire.b.passes = lambda _: False
    wire.run(3.0)
    assert wire.a.session(B).remote_discr == 0
    assert wire.a.sent[-1][1].your_discriminator == 0


def test_the_packet_that_reports_silence_still_tells_the_neighbor_which_session():
    wire = up(FAST)
    theirs = wire.b.session(A).local_discr
    wire.b.passes = lambda _: False
    wire.until(lambda: wire.a.session(B).state is State.DOWN, 1.0)
    packet = wire.a.sent[-1][1]
    assert (packet.state, packet.your_discriminator) == (State.DOWN, theirs)


# -- lateness


def test_a_process_that_was_stopped_gives_no_false_alarm_if_packets_wait():
    wire = up()
    wire.a.stopped_until = wire.now + 0.55
    wire.run(3.0)
    session = wire.a.session(B)
    assert not wire.a.downs() + wire.b.downs()
    assert session.counters.late >= 1
    assert session.counters.worst_late > 0.25


def test_a_late_session_waits_longer_for_packets_that_are_late_too():
    wire = up()
    session = wire.a.session(B)
    wire.b.passes = lambda _: False
    begin = wire.now
    # the process runs 0.5 s late once; its packets would be delayed by the same load
    wire.a.stopped_until = wire.now + 0.8
    wire.run(1.1)
    assert session.state is State.UP
    assert session.counters.extended >= 1
    # but not beyond twice the detection time
    wire.until(lambda: session.state is State.DOWN, 2.0)
    assert wire.now - begin <= 1.8 + 0.3


def test_a_session_on_time_counts_no_lateness():
    wire = up(FAST)
    wire.run(30.0)
    counters = wire.a.session(B).counters
    assert (counters.late, counters.extended, counters.worst_late) == (0, 0, 0.0)


# -- the end of a session


@pytest.mark.rfc("RFC 5880 §6.8.16")
def test_a_removed_session_tells_its_neighbor_that_this_is_no_failure():
    wire = up()
    wire.a.close(B)
    wire.run(0.01)
    _, state, remote = wire.b.reports[-1]
    assert (state, remote) == (State.DOWN, State.ADMIN_DOWN)
    assert wire.b.session(A).diagnostic == Diagnostic.NEIGHBOR_SIGNALED_DOWN
    # it stays for the detection time of the neighbor, in case a packet is lost
    assert not wire.a.closures
    wire.run(5.0)
    assert wire.a.closures == [SessionKey(1, B)]


def test_a_removed_session_that_is_wanted_again_comes_up_again():
    wire = up()
    wire.a.close(B)
    wire.run(1.0)
    wire.a.open(B, USUAL)
    wire.until(lambda: wire.a.session(B).state is State.UP, 2.0)
    wire.run(10.0)
    assert not wire.a.closures


def test_a_session_that_is_down_is_removed_at_once():
    wire, _, _ = scripted()
    wire.a.close(B)
    assert wire.a.closures == [SessionKey(1, B)]
    assert wire.a.sessions.next_deadline() is None or not wire.a.sessions.items()


def test_a_process_that_was_replaced_resumes_without_the_neighbor_noticing():
    wire = up()
    old = wire.a.session(B)
    wire.ends[A] = wire.a = type(wire.a)(wire, A, 9)
    wire.run(0.3)
    session = wire.a.open(B, USUAL, discriminators=(old.local_discr, old.remote_discr))
    wire.run(10.0)
    assert session.state is State.UP
    assert not wire.a.downs() + wire.b.downs()
    assert session.detection_time == pytest.approx(0.9)


def test_a_resumed_session_whose_neighbor_is_gone_goes_down():
    wire = up()
    old = wire.a.session(B)
    wire.b.passes = lambda _: False
    wire.ends[A] = wire.a = type(wire.a)(wire, A, 9)
    session = wire.a.open(B, USUAL, discriminators=(old.local_discr, old.remote_discr))
    wire.until(lambda: session.state is State.DOWN, 1.0)


# -- authentication


@pytest.mark.rfc("RFC 5880 §6.7.4")
@pytest.mark.parametrize("meticulous", [True, False])
def test_authenticated_sessions_come_up_and_detect_silence(meticulous):
    wire = up(replace(FAST, key=replace(KEY, meticulous=meticulous)))
    wire.run(10.0)
    assert not wire.a.downs()
    wire.b.passes = lambda _: False
    wire.until(lambda: wire.a.session(B).state is State.DOWN, 0.16)
    # RFC 5880 §6.8.1: sequence numbers begin anew after a silence
    wire.run(1.0)
    wire.ends[B] = wire.b = type(wire.b)(wire, B, 12)
    wire.b.open(A, replace(FAST, key=replace(KEY, meticulous=meticulous)))
    wire.until(lambda: wire.a.session(B).state is State.UP, 3.0)


def test_a_neighbor_with_another_key_does_not_come_up():
    wire = Wire()
    wire.a.open(B, replace(FAST, key=KEY))
    wire.b.open(A, replace(FAST, key=Sha1Key(1, b"another")))
    wire.run(5.0)
    session = wire.a.session(B)
    assert session.state is State.DOWN
    assert session.counters.discarded["auth-digest"] > 0
    assert wire.a.logged == ["auth-digest"]


@pytest.mark.rfc("RFC 5880 §6.7.4")
def test_a_replayed_packet_does_not_keep_a_session_up():
    wire = up(replace(FAST, key=KEY))
    wire.b.passes = lambda _: False
    session = wire.a.session(B)
    old = [packet for _, packet in wire.b.sent][-1]
    for _ in range(20):
        wire.a.sessions.receive(1, B, encode_packet(old), wire.now)
        wire.run(0.02)
    assert session.state is State.DOWN
    assert session.counters.discarded["auth-sequence"] > 0


def test_what_is_sent_names_both_ends():
    wire = up()
    packet = wire.a.sent[-1][1]
    assert packet.my_discriminator == wire.a.session(B).local_discr
    assert packet.your_discriminator == wire.b.session(A).local_discr
    assert decode_packet(encode_packet(packet)) == packet
