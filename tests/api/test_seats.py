"""Places of readers: no client keeps others out, and who reads nothing gives way first."""

import asyncio

import pytest

from fared.management.api.seats import TENURE, Seats
from fared.management.documents.errors import CommandError

MOST = 4


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def seats(clock):
    return Seats(MOST, clock)


async def held_by(seats, clients):
    """Take a place for each, in a task of its own that serves it."""
    served = []

    async def serve(client):
        served.append(seats.take(client))
        await asyncio.Event().wait()

    for client in clients:
        asyncio.create_task(serve(client))  # noqa: RUF006 - its seat refers to it
        await asyncio.sleep(0)
    return served


async def leaving(held):
    """Which of them must give way."""
    await asyncio.sleep(0)
    return [number for number, seat in enumerate(held) if seat.task.cancelled()]


@pytest.mark.parametrize(
    ("clients", "gone"), [("aaaa", [0]), ("aaab", [0]), ("baaa", [1]), ("bbaa", [0])]
)
async def test_the_client_with_most_places_gives_one_to_a_client_with_none(seats, clients, gone):
    held = await held_by(seats, clients)
    seats.take("c")
    assert await leaving(held) == gone
    assert len(seats) == MOST


async def test_a_client_gets_no_more_than_the_others_have(seats, clock):
    held = await held_by(seats, "aabb")
    clock.now = TENURE
    seats.take("a")
    assert await leaving(held) == [0]


async def test_the_one_that_reads_nothing_gives_way(seats, clock):
    held = await held_by(seats, "aaaa")
    clock.now = TENURE
    for number in (0, 1, 3):
        seats.read(held[number])
    seats.take("a")
    assert await leaving(held) == [2]


@pytest.mark.parametrize("clients", ["aaaa", "bcde"])
async def test_places_are_safe_for_a_while_from_those_with_as_many(seats, clock, clients):
    """Else clients that come again and again would take turns, and none would follow."""
    held = await held_by(seats, clients)
    clock.now = TENURE - 1
    with pytest.raises(CommandError) as refused:
        seats.take("a")
    assert refused.value.code == "busy"
    clock.now = TENURE
    seats.take("a")
    assert await leaving(held) == [0]


async def test_a_place_that_is_given_up_is_free(seats):
    held = await held_by(seats, "aaaa")
    seats.free(held[1])
    seats.take("a")
    assert await leaving(held) == []
