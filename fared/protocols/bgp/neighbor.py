"""A neighbor: its session, the link to it, and what is known of it while the session is up."""

from __future__ import annotations

import ipaddress
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix, format_address, is_link_local
from fared.core.links import InterfaceAddress, Link
from fared.core.streams import FROM_LINK, ReadStream, StreamId, Transport
from fared.core.timers import Timer
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.packet.packing import end_of_rib, pack_update, pack_withdrawn
from fared.protocols.bgp.rib.adj_in import AdjRibIn
from fared.protocols.bgp.rib.adj_out import AdjRibOut
from fared.protocols.bgp.rib.paths import BgpPeer
from fared.protocols.bgp.session.connection import Surroundings
from fared.protocols.bgp.session.events import Agreed, NeighborSettings
from fared.protocols.bgp.session.fsm import BgpState
from fared.protocols.bgp.session.session import BgpSession
from fared.protocols.bgp.settings import (
    INTERNAL,
    BgpNeighborSettings,
    BgpRestartSettings,
    BgpSettings,
)
from fared.protocols.igp.counters import PacketCounters


class NeighborPlace(NamedTuple):
    """Where a neighbor is reached: over a link, from an address of ours, at an address of its."""

    link: Link
    local: InterfaceAddress
    remote: int

    @property
    def family(self) -> int:
        """The family of both addresses."""
        return self.local.family

    @property
    def text(self) -> str:
        """The neighbor's address."""
        return format_address(self.family, self.remote)


def parse_address(text: str) -> tuple[int, int]:
    """Parse an address: family and number. Raises ValueError."""
    found = ipaddress.ip_address(text)
    return found.version, int(found)


class BgpSpeaker:
    """One neighbor by its number; without a ``place`` it cannot be reached."""

    def __init__(self, number: int, settings: BgpNeighborSettings, link: Link | None) -> None:
        self.number, self.settings = number, settings
        self.ifindex = None if link is None else link.ifindex
        """Of an unnumbered neighbor, whose link may be down."""
        self.name = (settings.address or "") if link is None else link.name
        """As operators know it: its address, or the interface of an unnumbered link."""
        self.address = (0, 0) if settings.address is None else parse_address(settings.address)
        """Family and address, of a numbered one."""
        self.place: NeighborPlace | None = None
        self.session: BgpSession | None = None
        self.agreed: Agreed | None = None
        """While the session is established."""
        self.peer: BgpPeer | None = None
        """As the tables know it: while it is established, and while its routes are kept."""
        self.since = 0.0
        self.gateways: dict[int, tuple[int, int]] = {}
        """By family of routes: family and address that packets are sent to."""
        self.stale: dict[int, Timer] = {}
        """Families whose routes are kept from an earlier session, until they are told again."""
        self.unended: set[int] = set()
        """Families whose first table has not been received."""
        self.untold: set[int] = set()
        """Families whose first table has not been sent."""
        self.held: Timer | None = None
        """It has announced too many prefixes, and is not tried again before."""
        self.bfd_up = False
        self.unread: set[StreamId] = set()
        """Streams that are not read."""
        self.flaps = 0
        """How often its session has ended."""
        self.received = self.sent = self.rejected = 0
        """UPDATE messages, and those of which something was not accepted, since the start."""
        self.counters = PacketCounters()
        """Messages of all types, since the start or ``clear counters``."""
        self._queue: deque[bytes] = deque()

    @property
    def state(self) -> BgpState:
        """The state of its session."""
        return BgpState.IDLE if self.session is None else self.session.state

    # -- what it is ---------------------------------------------------------------------------

    @property
    def internal(self) -> bool:
        """Whether it is in our AS."""
        assert self.agreed is not None
        return self.agreed.internal

    @property
    def imports(self) -> bool:
        """Whether its routes are accepted (RFC 8212 §2)."""
        words = self.settings.imports
        return self.internal if words is None else bool(words)

    @property
    def exports(self) -> tuple[str, ...]:
        """The routes that it is told (RFC 8212 §2)."""
        words = self.settings.exports
        return (("all",) if self.internal else ()) if words is None else words

    def peer_of(self, agreed: Agreed) -> BgpPeer:
        """Return it as the tables know it."""
        assert self.place is not None
        bandwidth = self.settings.path_bandwidth
        return BgpPeer(
            self.number,
            agreed.number,
            agreed.identifier,
            self.place.remote,
            agreed.internal,
            bandwidth.receive,
            bandwidth.missing,
            agreed.own_minimum,
        )

    # -- the session --------------------------------------------------------------------------

    def speak(self, surroundings: Surroundings, engine: BgpSettings, *, restarting: bool) -> None:
        """Begin a session at its place."""
        settings = self.session_settings(engine, restarting=restarting)
        self.session = BgpSession(surroundings, self.number, settings, self.counters)
        self.session.start()

    def session_settings(self, engine: BgpSettings, *, restarting: bool) -> NeighborSettings:
        """Return the settings of a session at its place."""
        assert self.place is not None
        mine = self.settings
        return NeighborSettings(
            engine.local_as,
            engine.router_id,
            self._transport(engine.local_as),
            mine.remote_as,
            tuple([one for one in mine.families if one in engine.families]),
            mine.hold_time,
            mine.keepalive,
            mine.connect_retry,
            mine.passive,
            extended_next_hop=self.place.family == FAMILY_IPV6,
            restart_time=_restart_time(engine.graceful_restart),
            enforce_first_as=mine.enforce_first_as,
            keeps=engine.graceful_restart.enabled,
            restarting=restarting,
            hostname=engine.hostname or "",
            # no value is no limit: only where it counts so may a neighbor leave it out
            own_minimum=mine.path_bandwidth.missing == "link",
        )

    def _transport(self, local_as: int) -> Transport:
        place, mine = self.place, self.settings
        assert place is not None
        local = mine.local or format_address(place.family, place.local.address)
        link = place.link.name if is_link_local(place.family, place.remote) else None
        ttl = FROM_LINK if mine.ttl_security else None
        if ttl is None and mine.remote_as not in (INTERNAL, local_as):
            # as other daemons do: an external neighbor is on the link
            ttl = 1
        return Transport(place.text, local, link, mine.port, ttl, mine.key)

    # -- next hops ----------------------------------------------------------------------------

    def next_hop(self, family: int) -> BgpNextHop | None:
        """Return our next hop for it: of a family of routes; None: there is no address for it."""
        assert self.agreed is not None
        assert self.place is not None
        place, link = self.place, self.place.link
        if family == FAMILY_IPV4:
            if place.family == FAMILY_IPV4:
                return BgpNextHop(FAMILY_IPV4, place.local.address)
            if self.agreed.extended_next_hop:
                return BgpNextHop(FAMILY_IPV6, place.local.address)
            found = next(iter(link.ipv4()), None)
            return None if found is None else BgpNextHop(FAMILY_IPV4, found.address)
        mine = [one for one in link.addresses if one.family == FAMILY_IPV6]
        wide = [one.address for one in mine if not one.link_local]
        near = link.link_local()
        second = 0 if near is None else near.address
        if wide:
            return BgpNextHop(FAMILY_IPV6, wide[0], second)
        # without a global address the link-local one alone, as FRR and BIRD accept it
        return BgpNextHop(FAMILY_IPV6, second) if second else None

    def gateway(self, next_hop: BgpNextHop) -> tuple[int, int] | None:
        """Return family and address to send to for a next hop; None: not on the link, or ours."""
        assert self.place is not None
        family, address = next_hop.family, next_hop.link_local or next_hop.address
        own = [one for one in self.place.link.addresses if one.family == family]
        if any(one.address in (next_hop.address, address) for one in own):
            return None
        if any(address in (one.broadcast, one.prefix.network) for one in own if one.broadcast):
            return None
        near = is_link_local(family, address) or any(one.contains(address) for one in own)
        return (family, address) if near else None

    # -- sending ------------------------------------------------------------------------------

    @property
    def blocked(self) -> bool:
        """Whether messages wait until it reads."""
        return bool(self._queue)

    def flush(self) -> bool:
        """Send messages that wait; return whether none is left."""
        session = self.session
        while self._queue:
            if session is None or not session.send(self._queue[0]):
                return False
            self._queue.popleft()
            self.sent += 1
        return True

    def tell(self, out: AdjRibOut, table: AdjRibIn, limit: int) -> tuple[Prefix, ...]:
        """Send what is due about at most so many prefixes.

        Returns those whose attributes leave no room in a message: they are withdrawn.
        """
        assert self.session is not None
        coding, large = self.session.coding, list[Prefix]()
        for update in out.take(table, limit):
            try:
                messages = list(pack_update(update, coding))
            except (ValueError, OverflowError):
                # RFC 4271 §9.2
                some = [one for group in update.routes for one in group.prefixes]
                messages = list(pack_withdrawn(some, coding))
                large += some
            self._queue.extend(messages)
        self.flush()
        return tuple(large)

    def withdraw_all(self, out: AdjRibOut, table: AdjRibIn) -> None:
        """Withdraw all that it has been told of a family."""
        assert self.session is not None
        some = [table.prefixes[number] for number in out.sent.nonzero()[0].tolist()]
        self._queue.extend(pack_withdrawn(some, self.session.coding))
        self.flush()

    def tell_end(self, family: int) -> None:
        """Send the end of the first table (RFC 4724 §2)."""
        self.untold.discard(family)
        self._queue.append(end_of_rib(family))
        self.flush()

    @property
    def full(self) -> bool:
        """Whether a stream is to be read no more."""
        session = self.session
        return session is not None and any(not reads for _, reads in session.reading())

    def reading(self) -> Iterator[ReadStream]:
        """Yield the streams that are read no more, or again."""
        found = [] if self.session is None else list(self.session.reading())
        for stream, reads in found:
            if reads is (stream in self.unread):
                yield ReadStream(stream, reads)
        self.unread = {stream for stream, reads in found if not reads}

    def forget(self) -> None:
        """The session is down: nothing waits for it."""
        self._queue.clear()
        self.unended.clear()
        self.untold.clear()

    def __repr__(self) -> str:
        return f"BgpSpeaker({self.number}, {self.name})"


def _restart_time(settings: BgpRestartSettings) -> int | None:
    if settings.enabled:
        return settings.restart_time
    # RFC 4724 §3: without families, it only helps others
    return 0 if settings.helper else None
