"""Inputs of a router are written as plain lists, and read back without running anything."""

from __future__ import annotations

import io
import math
from types import MappingProxyType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import Prefix
from fared.core.links import InterfaceAddress, Link
from fared.core.streams import Connect, StreamId, StreamKey, StreamReceived, Transport
from fared.management.recording import calls
from fared.management.recording.values import (
    NamedClass,
    UnreadableValueError,
    ValueReader,
    ValueWriter,
)
from fared.paths.fib.model import FibState, Member
from fared.protocols.igp import events as igp
from fared.protocols.igp.keys import Algorithm, AuthKey
from fared.router import events

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 140), 1 << 140),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.sampled_from(Algorithm),
    st.builds(Prefix, st.sampled_from([4, 6]), st.integers(0, (1 << 128) - 1), st.integers(0, 128)),
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(st.text() | st.integers(), inner),
        st.dictionaries(st.text(), inner).map(MappingProxyType),
        st.sets(st.integers()),
        st.frozensets(st.text()),
        st.builds(igp.LogRecord, st.text(), st.text(), st.dictionaries(st.text(), inner)),
    ),
)


def through_a_file(value: object) -> object:
    lines: list[calls.Line] = []
    written = ValueWriter(lines.append).write(value)
    lines.append(calls.InputHandled(1.0, written))
    reader = ValueReader()
    for line in calls.decoded(calls.encoded(lines)):
        if isinstance(line, NamedClass):
            reader.name(line)
        else:
            assert isinstance(line, calls.InputHandled)
            return reader.read(line.event)
    raise AssertionError


@given(VALUES)
def test_a_value_is_the_same_after_a_file(value):
    found = through_a_file(value)
    assert found == value
    assert type(found) is type(value)


def test_events_are_the_same_after_a_file():
    link = Link(
        ifindex=3,
        name="eth3",
        up=True,
        mtu=9000,
        addresses=(InterfaceAddress(6, 0xFE80 << 112 | 5, 64),),
        loopback=False,
        speed=math.inf,
        hardware_address=5,
    )
    key = AuthKey(Algorithm.HMAC_SHA_256, 7, b"secret")
    state = FibState({1: (3, 4, 9, 0)}, {5: (Member(1, 3),)}, {Prefix(4, 9, 32): 5}, {5}, {8, 900})
    for event in (
        events.To("ospf", igp.PacketReceived(3, 4, 5, b"\x02\x01", 1)),
        events.To("ospf", igp.LinkChanged(link, key)),
        events.To("isis", igp.NeighborCleared(3, 5)),
        events.FibAdopted(state),
        igp.LoadsMeasured({3: None}),
    ):
        assert through_a_file(event) == event


def test_a_class_is_named_once():
    named: list[NamedClass] = []
    writer = ValueWriter(named.append)
    first = writer.write(Member(1, 2))
    assert writer.write([Member(1, 2), Member(3, 4)]) == [-2, first, [first[0], 3, 4]]
    assert named == [NamedClass(0, "fared.paths.fib.model:Member", ("nexthop_id", "weight"))]


def test_what_is_no_value_is_refused():
    with pytest.raises(TypeError, match="cannot be recorded"):
        ValueWriter([].append).write(object())


@pytest.mark.parametrize(
    "name",
    [
        "os:stat_result",
        "subprocess:Popen",
        "fared.daemon.daemon:Daemon",
        "fared.management.recording.player:random.Random",
        "fared.nowhere:Class",
        "fared.protocols.igp.events:Nothing",
        "fared.management.recording.files:RecordingError",
        "fared.daemon.people.logs:Any",
    ],
)
def test_only_values_of_fared_are_read(name):
    with pytest.raises(UnreadableValueError, match="has no class"):
        ValueReader().name(NamedClass(0, name, ()))


def test_a_field_that_was_added_since_has_its_default():
    reader = ValueReader()
    fields = ("ifindex", "source", "destination", "payload")
    reader.name(NamedClass(0, "fared.protocols.igp.events:PacketReceived", fields))
    assert reader.read([0, 1, 2, 3, b"x"]) == igp.PacketReceived(1, 2, 3, b"x", 0)


def test_a_field_that_is_gone_is_named():
    with pytest.raises(UnreadableValueError, match="PacketReceived has no colour"):
        ValueReader().name(
            NamedClass(0, "fared.protocols.igp.events:PacketReceived", ("ifindex", "colour"))
        )


@given(st.recursive(st.none() | st.integers(-9, 9) | st.text(max_size=3), st.lists))
def test_damaged_values_are_refused(written):
    reader = ValueReader()
    reader.name(NamedClass(0, "fared.paths.fib.model:Member", ("nexthop_id", "weight")))
    reader.name(NamedClass(1, "fared.protocols.igp.keys:Algorithm", ()))
    try:
        reader.read(written)
    except UnreadableValueError:
        return


@given(st.binary(max_size=60), st.integers(0, 60))
def test_a_file_that_is_cut_or_damaged_gives_lines_or_an_error(noise, cut):
    whole = calls.encoded([calls.ClockTicked(1.0), calls.OutputsTaken(), calls.AgeDetected(0.5)])
    kept = list(calls.decoded(whole[:cut]))
    assert kept == list(calls.decoded(whole))[: len(kept)]
    try:
        found = list(calls.decoded(whole + noise))
    except calls.DamagedLineError:
        return
    assert found[:3] == list(calls.decoded(whole))


def test_every_line_has_a_tag_of_its_own():
    tags = [cls.__struct_config__.tag for cls in calls.Line.__args__]
    assert len(set(tags)) == len(tags)
    assert all(issubclass(cls, msgspec.Struct) for cls in calls.CALLS)


def test_keys_of_tcp_are_hidden_and_equal_if_they_were():
    """A router only compares them; texts of outputs, whose digests are recorded, show none."""

    def connect(key: StreamKey | None) -> Connect:
        return Connect(StreamId(1, passive=False, number=7), Transport("10.0.0.2", key=key))

    secret = connect(StreamKey(b"the secret"))
    lines: list[calls.Line] = []
    written = ValueWriter(lines.append).write(secret)
    assert b"the secret" not in calls.encoded([*lines, calls.InputHandled(1.0, written)])
    read = through_a_file(secret)
    assert read == through_a_file(connect(StreamKey(b"the secret")))
    assert read != through_a_file(connect(StreamKey(b"another")))
    assert read != secret
    assert repr(read) == repr(secret)
    assert through_a_file(connect(None)) == connect(None)
    received = events.To("bgp", StreamReceived(StreamId(1, passive=True, number=7), b"\xff" * 16))
    assert through_a_file(received) == received


def test_a_state_has_no_key_of_tcp():
    cloudpickle = pytest.importorskip("cloudpickle")
    from fared.management.recording.checkpoint import _Pickler

    sink = io.BytesIO()
    transport = Transport("10.0.0.2", key=StreamKey(b"the secret"))
    _Pickler(sink).dump([transport, transport.key])
    assert b"the secret" not in sink.getvalue()
    kept, key = cloudpickle.loads(sink.getvalue())
    assert kept == through_a_file(transport)
    assert key == kept.key
