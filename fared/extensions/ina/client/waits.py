"""For whom a job waits, as routers and the places of a ring have told this worker lately."""

from __future__ import annotations

from collections import Counter, deque

from fared.extensions.ina.plan.model import BitString, members
from fared.extensions.ina.slots.setup import JobSetup

_BELIEVED_FOR = 2.0
"""Seconds for which it is believed what was told."""
_MOST_TOLD = 1024
"""Each place tells every 100 ms, of each slot."""


class _Lately:
    """Workers, by BFR-id, and when something was told of each."""

    def __init__(self) -> None:
        self._told_at: dict[int, float] = {}

    def add(self, bits: BitString, now: float) -> None:
        self._told_at |= dict.fromkeys(members(bits), now)

    def found(self, now: float) -> list[int]:
        return [one for one, when in self._told_at.items() if now - when < _BELIEVED_FOR]


class TreeWaits:
    """What routers tell: each waits for workers below it, or for routers whose workers it names."""

    def __init__(self) -> None:
        self._waited_for = _Lately()

    def told(self, bits: BitString, now: float, *, silent: bool) -> None:
        """A router waits for these workers; none is ``silent`` to it."""
        del silent
        self._waited_for.add(bits, now)

    def lately(self, now: float) -> list[int]:
        """Return the BFR-ids of the workers that are waited for."""
        return self._waited_for.found(now)


class RingWaits:
    """What the places of a ring tell: each whose values it has not seen in a chain.

    Behind a worker that is stuck all values of those before it are missing, too, and any worker can
    be late for a moment; but whoever is stuck is missing at all places, again and again. One that
    is frozen when only results are to pass it makes others wait that lack results: it is silent.
    """

    def __init__(self) -> None:
        self._told: deque[tuple[float, BitString]] = deque(maxlen=_MOST_TOLD)
        self._silent = _Lately()
        """Those of whom the next one told that nothing comes."""

    def told(self, bits: BitString, now: float, *, silent: bool) -> None:
        """A place has not seen the values of these workers; ``silent``: nor anything else."""
        if silent:
            self._silent.add(bits, now)
        else:
            self._told.append((now, bits))

    def lately(self, now: float) -> list[int]:
        """Return the BFR-ids of the workers that are silent; else those that are missing most."""
        if silent := self._silent.found(now):
            return silent
        lately = [members(bits) for when, bits in self._told if now - when < _BELIEVED_FOR]
        often = Counter(one for told in lately for one in told)
        most = max(often.values(), default=0)
        return [one for one, times in often.items() if times == most]


Waits = TreeWaits | RingWaits


def renewed(waits: Waits, setup: JobSetup) -> Waits:
    """Return what tells in an epoch: the same object, unless a ring follows trees or they it."""
    if isinstance(waits, TreeWaits) == bool(setup.trees):
        return waits
    return TreeWaits() if setup.trees else RingWaits()
