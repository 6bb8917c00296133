"""Virtual time, and cables that carry frames in it: the base of every simulated network.

A network defines what an end does with a frame and when its nodes wake up; the clock, delay and
loss are here. Events at equal times happen in order of scheduling, and randomness comes from one
seeded source, so a run repeats exactly.
"""

from __future__ import annotations

import heapq
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

import msgspec

Frame = TypeVar("Frame")
End = tuple[int, int]
"""The number of a node and the index of its interface."""


class Cable(msgspec.Struct, eq=False):
    """A link between two ends, or a shared segment. Times in seconds."""

    ends: tuple[End, ...] = ()
    delay: float = 0.0005
    loss: float = 0.0
    jitter: float = 0.0
    cut: bool = False
    deaf: set[int] = msgspec.field(default_factory=set)
    """Nodes that do not receive from it."""


class VirtualTime:
    """A clock that advances from event to event."""

    max_steps = 20_000_000
    """The most events at one time; more are a busy loop."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self.events = 0
        self._queue: list[tuple[float, int, Callable[[], None], End | None]] = []
        self._order = 0

    def at(self, time: float, action: Callable[[], None], end: End | None = None) -> None:
        """Schedule an action at a time, for an end if given."""
        self._order += 1
        heapq.heappush(self._queue, (time, self._order, action, end))

    def deadlines(self) -> Iterable[float]:
        """Return the deadlines of polled nodes; called before each step."""
        return ()

    def fire(self) -> None:
        """Run what is due on polled nodes."""

    def next_time(self) -> float | None:
        """The time of the next event."""
        times = list(self.deadlines())
        if self._queue:
            times.append(self._queue[0][0])
        return min(times, default=None)

    def step(self) -> bool:
        """Run the next event; False if there is none."""
        at = self.next_time()
        if at is None:
            return False
        self.now = max(self.now, at)
        while self._queue and self._queue[0][0] <= self.now:
            self.events += 1
            heapq.heappop(self._queue)[2]()
        self.fire()
        return True

    def run(self, seconds: float) -> None:
        """Let this much virtual time pass."""
        self.run_until(self.now + seconds)

    def run_until(self, time: float) -> None:
        """Let virtual time pass up to ``time``. Raises RuntimeError if it does not."""
        for _ in range(self.max_steps):
            at = self.next_time()
            if at is None or at > time:
                self.now = time
                return
            self.step()
        raise RuntimeError(f"more than {self.max_steps} steps before {time}")

    def until(
        self, condition: Callable[[], bool], seconds: float = 60.0, *, every: float = 0.0
    ) -> float:
        """Run until a condition holds, checked after each step, or ``every`` so many seconds.

        Returns the elapsed seconds. Raises TimeoutError.
        """
        began = self.now
        while not condition():
            at = self.next_time()
            if at is None or at > began + seconds:
                raise TimeoutError(f"not within {seconds} s; next: {at}, now: {self.now}")
            if every:
                self.run(every)
            else:
                self.step()
        return self.now - began


class VirtualWire(VirtualTime, ABC, Generic[Frame]):
    """Numbered nodes on cables."""

    def __init__(self, seed: int = 1, now: float = 0.0) -> None:
        super().__init__(now)
        self.seed = seed
        self.rng = random.Random(seed)
        self.cables: list[Cable] = []
        self.by_end: dict[End, Cable] = {}

    @abstractmethod
    def deliver(self, end: End, frame: Frame) -> None:
        """Deliver a frame that has arrived at an interface of a node."""

    def hears(self, end: End, frame: Frame) -> bool:
        """Whether an end accepts a frame of its cable."""
        del end, frame
        return True

    def free_port(self, number: int, first: int = 1) -> int:
        """Return the lowest free interface index of a node, from ``first`` on."""
        return first + sum(1 for end in self.by_end if end[0] == number)

    def lay(self, cable: Cable) -> Cable:
        """Connect a cable to its ends."""
        self.cables.append(cable)
        self.by_end.update(dict.fromkeys(cable.ends, cable))
        return cable

    def plug(self, cable: Cable, end: End) -> None:
        """Connect one more end."""
        cable.ends = (*cable.ends, end)
        self.by_end[end] = cable

    def carry(self, source: End, frame: Frame) -> None:
        """Send a frame to all other ends of the cable."""
        cable = self.by_end.get(source)
        if cable is None or cable.cut:
            return
        for end in cable.ends:
            if end == source or end[0] in cable.deaf or not self.hears(end, frame):
                continue
            if cable.loss and self.rng.random() < cable.loss:
                continue
            jitter = cable.jitter * self.rng.random() if cable.jitter else 0.0
            self.post(end, frame, cable.delay + jitter)

    def post(self, end: End, frame: Frame, delay: float = 0.0) -> None:
        """Deliver a frame to an end after ``delay``, from any sender."""
        self.at(self.now + delay, partial(self.deliver, end, frame), end)

    def lose(self, *numbers: int) -> None:
        """Drop all frames in transit to these nodes."""
        self._queue = [item for item in self._queue if item[3] is None or item[3][0] not in numbers]
        heapq.heapify(self._queue)
