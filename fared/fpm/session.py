"""The state machine of a client of ``fpmsyncd``: what to send, and what has arrived.

Wanted is what the FIB planner believes to be installed, read when a route is sent, so changes of
one prefix coalesce and memory is bounded by the table; ``touch`` names what to compare. (Operations
on the kernel would not do: with a lost link it removes next hops without one.) A connection begins
with a replay of all wanted routes and deletions of all others that may exist (``rows``). DELROUTE
and the NEWROUTE after it are in one frame, so that orchagent sees one change.

Next hops that SONiC takes for others are withheld (``withheld``): a management port or a loopback
would make orchagent withdraw the whole prefix, and an unknown interface has no name. A prefix
without others is withdrawn.

The owner connects, feeds ``received`` and ``tick``, writes ``writable``, and closes the connection
on a ``fault``. ``state`` is down, replay or up; ``acks`` has the rule of acknowledgements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from fared.core.ids import Prefix
from fared.core.link_facts import MANAGEMENT_PORTS
from fared.core.wire import DecodeError
from fared.fpm.acks import Acknowledgements
from fared.fpm.decode import ack_in
from fared.fpm.encode import MAIN_TABLE, FpmEncoder, InlineHop, inline_hops
from fared.fpm.frames import HEADER, LARGEST, FrameReader, frames
from fared.fpm.rows import AnnouncedRows, Hops
from fared.paths.fib.model import FibState

PATIENCE: Final = 10.0
"""Seconds in which a route is acknowledged."""
_SLACK: Final = 1024
_NOT_FOR_ROUTES: Final = MANAGEMENT_PORTS | {"lo"}
_LOOPBACKS: Final = "Loopback"
State = Literal["down", "replay", "up"]


class _RowHops(NamedTuple):
    """The next hops behind an object; ``withheld``: some are left out. None: leave the row."""

    hops: Hops | None
    withheld: bool


class FpmSession:
    """``wanted`` returns the installed state, ``names`` the name of an interface by index."""

    def __init__(
        self,
        protocol: int,
        metrics: Mapping[int, int],
        *,
        wanted: Callable[[], FibState],
        names: Callable[[int], str | None],
        patience: float = PATIENCE,
    ) -> None:
        """``metrics`` are by family."""
        self._protocol = protocol
        self._encoder = FpmEncoder(protocol, metrics)
        self._wanted, self._names = wanted, names
        self.rows = AnnouncedRows()
        self.acks = Acknowledgements(patience)
        self.state: State = "down"
        self.counts: Counter[str] = Counter()
        """``put``, ``delete``, ``ack``, ``connection``, ``replay``, ``bytes-sent``, ..."""
        self.withheld: set[Prefix] = set()
        """Prefixes some of whose next hops are not sent."""
        self.too_long: set[Prefix] = set()
        """Prefixes with more next hops than fit into a frame: they are withdrawn."""
        self._dirty: dict[Prefix, bool] = {}
        """What to compare; True: to send in any case."""
        self._replaying = self._number = 0
        self._reader = FrameReader()
        self._targets: dict[int, _RowHops] = {}
        self._usable: dict[int, bool] = {}

    # -- what is wanted -----------------------------------------------------------------------

    def touch(self, prefixes: Iterable[Prefix]) -> None:
        """Compare the routes of ``prefixes`` with what was sent, and send what differs."""
        if self.state == "down":
            return  # a connection begins with all
        for prefix in prefixes:
            self._dirty.setdefault(prefix, False)
        wanted, rows = self._wanted().routes, self.rows
        if len(self._dirty) > 2 * (len(wanted) + len(rows.announced)) + _SLACK:
            for prefix in [p for p in self._dirty if p not in wanted and not rows.may_exist(p)]:
                self._replaying -= self._dirty.pop(prefix)
            self._look_replayed()

    def links_changed(self) -> None:
        """Look again which interfaces have a name, and one for routes."""
        if any(self._is_usable(ifindex) != known for ifindex, known in self._usable.items()):
            self._usable.clear()
            self.touch(self._wanted().routes)

    def inherit(self, prefixes: Iterable[Prefix]) -> None:
        """Note the rows that a former process left, before the first connection if possible.

        Without this any row may have any form, and each is deleted before it is put. ``bury``
        deletes those that nobody wants, once all routes are known.
        """
        self.rows.inherit(prefixes)

    def bury(self) -> None:
        """Delete inherited rows that nobody wants."""
        self.touch(self.rows.bury(self._wanted().routes))

    # -- what has arrived ---------------------------------------------------------------------

    @property
    def replayed(self) -> bool:
        """Whether this connection has been sent all routes."""
        return self.state == "up"

    def offloaded(self, prefix: Prefix) -> bool:
        """Whether the route as it is wanted was acknowledged on this connection."""
        return (
            self.state != "down"
            and prefix in self.rows.announced
            and prefix not in self._dirty
            and not self.acks.waits(prefix)
        )

    @property
    def waiting(self) -> int:
        """How many routes are to be sent, or to be acknowledged."""
        return len(self._dirty) + self.acks.waiting()

    # -- the connection -----------------------------------------------------------------------

    def connected(self, now: float) -> None:
        """Begin a connection with a replay."""
        self.counts["connection"] += 1
        self._reader = FrameReader()
        self.acks.connected(now)
        self.rows.connected()
        wanted = self._wanted().routes
        # what must go makes room for what comes
        gone = [p for p in (*self.rows.tombstones, *self.rows.announced) if p not in wanted]
        self._dirty = dict.fromkeys((*gone, *wanted), True)
        self._replaying = len(self._dirty)
        self.state = "replay"
        self._look_replayed()

    def lost(self) -> None:
        """End the connection; what was announced stays known."""
        self.state = "down"

    def received(self, data: bytes, now: float) -> str:
        """Take bytes of the peer; return why the connection is of no use, or nothing."""
        try:
            for message in self._reader.feed(data):
                ack = ack_in(message)
                if ack is None or (ack.table, ack.protocol) != (MAIN_TABLE, self._protocol):
                    self.counts["other-message"] += 1
                    continue
                self.counts["ack"] += 1
                number = self.acks.received(ack.prefix, now)
                if number is not None:
                    self.rows.confirmed(ack.prefix, number)
        except DecodeError as error:
            self.counts["bad-frame"] += 1
            return f"bad message: {error}"
        return ""

    def tick(self, now: float) -> str:
        """Let time pass; return why the connection is of no use, or nothing."""
        if self.state == "down":
            return ""
        if self.acks.silent(now):
            self.counts["silence"] += 1
            return "nothing is acknowledged"
        self.acks.settle(now)
        return ""

    def next_deadline(self) -> float | None:
        """When to call ``tick``."""
        return None if self.state == "down" else self.acks.next_deadline()

    # -- sending ------------------------------------------------------------------------------

    def has_output(self) -> bool:
        """Whether ``writable`` would look at something."""
        return self.state != "down" and bool(self._dirty)

    def writable(self, size: int, now: float) -> bytes:
        """Return the next frames, of about ``size`` bytes."""
        if not self.has_output():
            return b""
        self._targets.clear()
        units: list[bytes] = []
        while self._dirty and size > 0:
            prefix = next(iter(self._dirty))
            forced = self._dirty.pop(prefix)
            unit = self._unit(prefix, now, forced=forced)
            if unit:
                units.append(unit)
                size -= len(unit)
            if forced:
                self._replaying -= 1
                self._look_replayed()
        data = b"".join(frames(units))
        self.counts["bytes-sent"] += len(data)
        return data

    def _look_replayed(self) -> None:
        if self._replaying == 0 and self.state == "replay":
            self.state = "up"
            self.counts["replay"] += 1

    def _unit(self, prefix: Prefix, now: float, *, forced: bool) -> bytes:
        """Return the messages that belong together for one prefix."""
        hops = self._hops_of(prefix)
        if hops is None:
            return b""
        if not hops:
            return self._delete(prefix)
        if not forced and self.rows.announced.get(prefix) == hops:
            return b""
        messages = [self._encoder.put(prefix, hops)]
        deleted = self.rows.needs_deletion(prefix, hops)
        if deleted:
            messages.insert(0, self._encoder.delete(prefix))
        unit = b"".join(messages)
        if HEADER.size + len(unit) > LARGEST:
            self.too_long.add(prefix)
            return self._delete(prefix)
        self.too_long.discard(prefix)
        self._number += 1
        self.counts["delete"] += deleted
        self.counts["put"] += 1
        self.rows.put(prefix, hops, deleted=deleted)
        self.acks.sent(prefix, self._number, now)
        return unit

    def _delete(self, prefix: Prefix) -> bytes:
        if not self.rows.may_exist(prefix):
            return b""
        self._number += 1
        self.counts["delete"] += 1
        self.rows.deleted(prefix, self._number)
        self.acks.deleted(prefix)
        return self._encoder.delete(prefix)

    def _hops_of(self, prefix: Prefix) -> Hops | None:
        """Return the next hops to send; none: no route, None: unknown, the row stays."""
        state = self._wanted()
        number = state.routes.get(prefix)
        if number is None:
            self.withheld.discard(prefix)
            self.too_long.discard(prefix)
            return ()
        target = self._targets.get(number)
        if target is None:
            target = self._targets[number] = self._resolve(state, number)
        if target.withheld:
            self.withheld.add(prefix)
        else:
            self.withheld.discard(prefix)
        return target.hops

    def _resolve(self, state: FibState, number: int) -> _RowHops:
        if state.groups.get(number) == ():  # to be written again: what the kernel has is unknown
            return _RowHops(None, withheld=False)
        found = inline_hops(state, number)
        hops = tuple([one for one in found if self._carries(one)])
        if len(hops) == 1:  # whose weight is nowhere in a message
            hops = (InlineHop(hops[0].hop, 1),)
        return _RowHops(hops, withheld=len(hops) < len(found))

    def _carries(self, one: InlineHop) -> bool:
        ifindex = one.hop[0]
        if not ifindex:
            return True
        known = self._usable.get(ifindex)
        if known is None:
            known = self._usable[ifindex] = self._is_usable(ifindex)
        return known

    def _is_usable(self, ifindex: int) -> bool:
        name = self._names(ifindex)
        return name is not None and name not in _NOT_FOR_ROUTES and not name.startswith(_LOOPBACKS)
