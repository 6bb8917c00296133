"""Replies of Redis are the same however the stream is cut, and other bytes are refused."""

from __future__ import annotations

import contextlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.sonic.resp import ReplyReader, RespError, ServerError, pack

LINES = st.binary(max_size=20).filter(lambda line: b"\r\n" not in line and line[-1:] != b"\r")
SIMPLE = st.one_of(
    st.none(), st.binary(max_size=40), st.integers(-(1 << 63), 1 << 63), LINES.map(ServerError)
)
REPLIES = st.recursive(SIMPLE, lambda one: st.lists(one, max_size=4), max_leaves=12)


def packed(reply):
    match reply:
        case None:
            return b"$-1\r\n"
        case ServerError():
            return b"-" + reply + b"\r\n"
        case bytes():
            return b"$%d\r\n%b\r\n" % (len(reply), reply)
        case int():
            return b":%d\r\n" % reply
        case list():
            return b"*%d\r\n" % len(reply) + b"".join(map(packed, reply))


def depth(reply):
    return 1 + max(map(depth, reply), default=0) if isinstance(reply, list) else 0


def read(data, cuts):
    reader, found, edges = ReplyReader(), [], [0, *sorted(cuts), len(data)]
    for start, end in pairwise(edges):
        found += reader.feed(data[start:end])
    return found


@given(st.lists(REPLIES.filter(lambda reply: depth(reply) < 4), max_size=4), st.data())
def test_replies_are_read_from_pieces_of_any_size(replies, data):
    stream = b"".join(map(packed, replies))
    found = read(stream, data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    assert found == replies
    assert [type(one) for one in found] == [type(one) for one in replies]


@given(st.lists(st.sampled_from([b"*2\r\n", b"$3\r\n", b"abc\r\n", b":1\r\n", b"x", b"\r\n"])))
def test_any_bytes_are_replies_or_refused(parts):
    found = []
    with contextlib.suppress(RespError):
        found = read(b"".join(parts), [])
    assert len(found) <= len(parts)


@pytest.mark.parametrize(
    "stream",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"$99999999\r\n",
        b"*99999999\r\n",
        b"$-2\r\n",
        b":1x\r\n",
        b"*1\r\n" * 6,
        b"+" + bytes(1 << 17),
    ],
)
def test_what_would_grow_without_bound_or_is_no_reply_is_refused(stream):
    with pytest.raises(RespError):
        read(stream, [])


def test_a_command_is_packed_as_bulk_strings():
    assert pack([("SELECT", 4), ("HGET", b"k\0", "é")]) == (
        b"*2\r\n$6\r\nSELECT\r\n$1\r\n4\r\n*3\r\n$4\r\nHGET\r\n$2\r\nk\0\r\n$2\r\n\xc3\xa9\r\n"
    )
