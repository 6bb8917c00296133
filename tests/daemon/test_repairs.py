"""What others delete is written again at once, however often; only the time for it is limited."""

import asyncio
import itertools

from fared.daemon.loop.repairs import Repairs
from fared.paths.fib.model import ForeignChanges
from fared.router import events


class World:
    """Repairs that take a given time each, on a clock that jumps to the next timer."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.worked, self.now = seconds, 0.0, 0.0
        self.deleted: list[int] = []
        self.repaired: list[tuple[float, int]] = []
        self.loop = asyncio.new_event_loop()
        self.loop.time = lambda: self.now
        self.repairs = Repairs(self.take, self.feed, lambda: self.worked)

    def take(self) -> ForeignChanges | None:
        deleted, self.deleted = tuple(self.deleted), []
        return ForeignChanges(deleted) if deleted else None

    def feed(self, event: events.FibDamaged) -> None:
        self.worked += self.seconds
        self.now += self.seconds
        self.repaired.append((self.now, len(event.changes.deleted)))

    def delete(self, every: float, until: float) -> None:
        """Somebody deletes a group again and again, and the kernel notifies it."""

        async def scenario() -> None:
            begun = 0
            while self.now < until:
                self.deleted.append(1)
                self.repairs.noticed()
                begun += 1
                self.now = max(self.now, begun * every)
                await asyncio.sleep(0)
                await asyncio.sleep(0)

        self.loop.run_until_complete(scenario())
        self.repairs.stop()
        self.loop.close()


def test_each_of_many_deletions_is_repaired_at_once():
    world = World(0.002)
    world.delete(every=0.25, until=60.0)
    assert len(world.repaired) == 240
    assert {number for _, number in world.repaired} == {1}


def test_deletions_without_end_take_a_fifth_of_the_time_and_are_repaired_together():
    world = World(0.001)
    world.delete(every=0.0005, until=30.0)
    assert 0.19 * 30 < world.worked < 0.21 * 30 + 0.5
    late = [at for at, _ in world.repaired if at > 10]
    assert max(b - a for a, b in itertools.pairwise(late)) < 0.02
