"""What the switch's rows are, as far as known: the memory of a session across connections.

Nothing but DELROUTE removes a row, and a row keeps the fields of its former form (unicast,
blackhole) until it is deleted. After a lost connection nobody knows how many of the last messages
were processed, so a row is *in doubt* from a change of its form, or its first announcement over an
unknown row, until it is acknowledged; a deleted one is a *tombstone* until something that was sent
after the deletion is acknowledged. On each new connection a tombstone is deleted again, and a row
in doubt is deleted before it is put.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable

from fared.core.ids import Prefix
from fared.fpm.encode import InlineHop, form_of

Hops = tuple[InlineHop, ...]
UNSENT = 0
"""In place of a number of a message: not sent on this connection."""


class AnnouncedRows:
    """``announced`` are the routes sent last; messages have increasing numbers from 1.

    ``tombstones`` are the keys that may exist but should not, with the number of their deletion.
    """

    def __init__(self) -> None:
        self.announced: dict[Prefix, Hops] = {}
        self.tombstones: dict[Prefix, int] = {}
        self.inherited: set[Prefix] | None = None
        """Rows that a former process left and nobody has announced yet; None: unknown."""
        self._doubt: set[Prefix] = set()
        self._certain: set[Prefix] = set()
        """Those in doubt, or deleted, about which this connection has sent what makes sure."""
        self._graves: deque[tuple[int, Prefix]] = deque()

    def connected(self) -> None:
        """Begin a connection: how much of the former one was processed is unknown."""
        self._certain.clear()
        self._graves.clear()
        self.tombstones = dict.fromkeys(self.tombstones, UNSENT)

    def inherit(self, prefixes: Iterable[Prefix]) -> None:
        """Note the rows that a former process left: all that exist of ours."""
        self.inherited = {p for p in prefixes if p not in self.announced}
        self._doubt |= self.inherited

    def bury(self, wanted: Container[Prefix]) -> list[Prefix]:
        """Make tombstones of inherited rows until they are announced.

        Return those that nobody wants.
        """
        found, self.inherited = self.inherited or set(), set()
        self._doubt -= found
        self.tombstones.update(dict.fromkeys(found, UNSENT))
        return [prefix for prefix in found if prefix not in wanted]

    def needs_deletion(self, prefix: Prefix, hops: Hops) -> bool:
        """Whether a route can be put only after DELROUTE."""
        known = self.announced.get(prefix)
        if known is not None and form_of(known) is not form_of(hops):
            return True
        return prefix not in self._certain and self._unsure(prefix)

    def _unsure(self, prefix: Prefix) -> bool:
        if prefix in self._doubt or prefix in self.tombstones:
            return True
        return self.inherited is None and prefix not in self.announced

    def put(self, prefix: Prefix, hops: Hops, *, deleted: bool) -> None:
        """Record a route that is sent, with DELROUTE in front if ``deleted``."""
        self.announced[prefix] = hops
        if deleted:
            self._doubt.add(prefix)
            self._certain.add(prefix)
        if self.tombstones.pop(prefix, None) is not None:
            self._doubt.add(prefix)
        if self.inherited:
            self.inherited.discard(prefix)

    def may_exist(self, prefix: Prefix) -> bool:
        """Whether a row has to be deleted, and this connection has not done it."""
        return prefix in self.announced or self.tombstones.get(prefix) == UNSENT

    def deleted(self, prefix: Prefix, number: int) -> None:
        """Record a deletion that is sent."""
        self.announced.pop(prefix, None)
        self._doubt.discard(prefix)
        self._certain.add(prefix)
        self.tombstones[prefix] = number
        self._graves.append((number, prefix))

    def confirmed(self, prefix: Prefix, number: int) -> None:
        """Record that the peer has processed all up to ``number``, a route to ``prefix``."""
        self._doubt.discard(prefix)
        self._certain.discard(prefix)
        while self._graves and self._graves[0][0] < number:
            deletion, gone = self._graves.popleft()
            if self.tombstones.get(gone) == deletion:
                del self.tombstones[gone]
                self._certain.discard(gone)
