"""Followers of events: filters, bounded queues, and streams over the control socket."""

import asyncio
import json
import threading
from collections import deque
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import pytest

from fared.management.api.control import ControlServer
from fared.management.api.feed import MAX_FOLLOWERS, QUEUE, EventFeed
from fared.management.api.respond import Responder
from fared.management.documents.errors import CommandError
from tests.waiting import wait_for

HEADER = {"ok": True, "stream": "fared-events/1"}


def record(event, level="info", at=0.0, **fields):
    return {"time": at, "level": level, "event": event, "fields": fields}


UP = record("neighbor-changed", interface="swp1", state="Full")
SICK = record("link-sick", "warning", interface="swp2")
BATCH = record("fib-applied", "debug", operations=3)
ODD = record("started-twice", interface=7)
ALL = [UP, SICK, BATCH, ODD]


async def seen(args, records=ALL):
    feed = EventFeed(deque())
    follower = feed.follow(args)
    for one in records:
        feed.offer(one)
    return follower.take(QUEUE)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, [UP, SICK, ODD]),
        ({"level": "debug"}, ALL),
        ({"level": "warning"}, [SICK]),
        ({"events": ["neighbor-*", "link-????"]}, [UP, SICK]),
        ({"events": ["neighbor"]}, []),
        ({"events": ["link-[!s]*"]}, []),
        ({"interface": "swp*"}, [UP, SICK]),
        ({"interface": "swp2", "events": ["neighbor-*"]}, []),
    ],
)
async def test_a_follower_gets_what_it_wants(args, expected):
    assert await seen(args) == expected


@pytest.mark.parametrize(
    "args",
    [
        {"level": "loud"},
        {"level": 3},
        {"events": "neighbor-*"},
        {"events": [1]},
        {"events": ["x" * 201]},
        {"events": ["x"] * 65},
        {"interface": 4},
        {"since": "10m"},
        {"since": -1},
        {"since": float("nan")},
        {"sinse": 10},
    ],
)
async def test_other_arguments_are_refused(args):
    with pytest.raises(CommandError) as refused:
        EventFeed(deque()).follow(args)
    assert refused.value.code == "bad-argument"


async def test_a_full_queue_loses_the_oldest_and_says_how_many():
    """In their place, and once."""
    many = [record("e", at=float(n)) for n in range(QUEUE + 7)]
    feed = EventFeed(deque())
    follower = feed.follow({})
    for one in many:
        feed.offer(one)
    lost, *rest = follower.take(QUEUE + 1)
    assert (lost["event"], lost["fields"], lost["time"]) == ("events-lost", {"count": 7}, 7.0)
    assert rest == many[7:]
    feed.offer(UP)
    assert follower.take(9) == [UP]


async def test_an_event_that_is_not_wanted_does_not_displace_others():
    feed = EventFeed(deque())
    follower = feed.follow({"level": "warning"})
    feed.offer(SICK)
    for _ in range(2 * QUEUE):
        feed.offer(UP)
    assert follower.take(9) == [SICK]


async def test_since_begins_with_what_the_log_still_has(monkeypatch):
    monkeypatch.setattr("fared.management.api.feed.time.time", lambda: 1000.0)
    ring = deque([record("old", at=900.0), record("new", at=950.0), record("fine", "debug", 960.0)])
    feed = EventFeed(ring)
    follower = feed.follow({"since": 60})
    feed.offer(UP)
    assert [one["event"] for one in follower.take(9)] == ["new", "neighbor-changed"]


async def test_what_nobody_follows_is_not_wanted():
    feed = EventFeed(deque())
    assert not feed.wants(40)
    follower = feed.follow({"level": "warning"})
    assert (feed.wants(20), feed.wants(30)) == (False, True)
    feed.leave(follower)
    assert not feed.wants(40)


async def test_the_number_of_followers_is_limited():
    feed = EventFeed(deque())
    followers = [feed.follow({}) for _ in range(MAX_FOLLOWERS)]
    with pytest.raises(CommandError) as refused:
        feed.follow({})
    assert refused.value.code == "busy"
    feed.leave(followers[3])
    feed.follow({})


async def test_events_of_other_threads_wake_the_follower():
    """The history of configurations is written in a thread, and logs there."""
    feed = EventFeed(deque())
    follower = feed.follow({})
    waiting = asyncio.create_task(follower.arrived())
    await asyncio.sleep(0)
    thread = threading.Thread(target=feed.offer, args=(UP,))
    thread.start()
    await asyncio.wait_for(waiting, 30)
    thread.join()
    assert follower.take(9) == [UP]


# -- over the socket


@asynccontextmanager
async def serving(tmp_path):
    feed = EventFeed(deque())
    path = str(tmp_path / "fared.sock")
    server = ControlServer(path, Responder(lambda *_: {"format": "fared-status/1"}), feed)
    await server.start()
    try:
        yield server, feed, path
    finally:
        await server.stop()


@asynccontextmanager
async def following(path, args=None):
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(json.dumps({"command": "monitor", "args": args or {}}).encode() + b"\n")
    try:
        yield reader
    finally:
        writer.transport.abort()


async def line(reader):
    return json.loads(await asyncio.wait_for(reader.readline(), 30))


async def test_events_are_lines_in_their_order(tmp_path):
    async with serving(tmp_path) as (_, feed, path), following(path) as reader:
        assert await line(reader) == HEADER
        for number in range(500):
            feed.offer(record("e", number=number))
        got = [await line(reader) for _ in range(500)]
        assert got == [record("e", number=number) for number in range(500)]


async def test_a_refusal_leaves_the_connection_open_no_longer(tmp_path):
    async with serving(tmp_path) as (_, _, path), following(path, {"level": "loud"}) as reader:
        assert (await line(reader))["error"]["code"] == "bad-argument"


async def test_the_reader_whose_place_another_gets_is_disconnected(tmp_path, monkeypatch):
    monkeypatch.setattr("fared.management.api.seats.TENURE", 0.0)
    async with serving(tmp_path) as (_, _, path), AsyncExitStack() as stack:
        readers = []
        for _ in range(MAX_FOLLOWERS + 1):
            readers.append(await stack.enter_async_context(following(path)))
            assert await line(readers[-1]) == HEADER
        assert await asyncio.wait_for(readers[0].read(), 30) == b""


async def test_a_client_that_leaves_is_forgotten_without_an_event(tmp_path):
    async with serving(tmp_path) as (_, feed, path):
        async with following(path) as reader:
            await line(reader)
            assert feed.wants(20)
        gone = partial(wait_for, lambda: not feed.wants(20), 10, "the follower is forgotten")
        await asyncio.to_thread(gone)


async def test_a_reader_that_stands_still_is_told_what_it_lost(tmp_path):
    """The daemon meanwhile offers a hundred thousand events without waiting for it."""
    count = 100_000
    async with serving(tmp_path) as (_, feed, path), following(path) as reader:
        assert await line(reader) == HEADER
        reader._transport.pause_reading()
        for number in range(count):
            feed.offer(record("e", number=number, padding="x" * 200))
            if number % 1000 == 0:
                await asyncio.sleep(0)
        reader._transport.resume_reading()
        got, lost = 0, 0
        last = -1
        while last != count - 1:
            one = await line(reader)
            if one["event"] == "events-lost":
                lost += one["fields"]["count"]
                continue
            got += 1
            number = one["fields"]["number"]
            assert number == last + 1 or number == got + lost - 1
            last = number
        assert got + lost == count
        assert lost > count - 20 * QUEUE


async def test_a_daemon_that_stops_sends_the_last_events(tmp_path):
    async with serving(tmp_path) as (server, feed, path), following(path) as reader:
        assert await line(reader) == HEADER
        for number in range(300):
            feed.offer(record("e", number=number))
        feed.offer(record("stopped"))
        await server.stop()
        rest = (await reader.read()).splitlines()
        assert len(rest) == 301
        assert json.loads(rest[-1])["event"] == "stopped"


async def test_a_reader_that_stands_still_does_not_hold_up_the_end(tmp_path):
    async with serving(tmp_path) as (server, feed, path), following(path) as reader:
        assert await line(reader) == HEADER
        reader._transport.pause_reading()
        for _ in range(QUEUE):
            feed.offer(record("e", padding="x" * 10_000))
        await asyncio.wait_for(server.stop(), 15)
        assert not feed.wants(40)
