"""Which neighbors there are, over which links they are reached, and who may connect.

A neighbor of a numbered link has an address in a network of the link; that of an unnumbered link is
known once a router advertisement was heard there. A session lasts as long as its place, the link
and both addresses, stays the same; a neighbor, by its address or the name of its interface, as long
as it is configured and the interface exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from fared.core.bfd import BfdChanged, BfdStatus, BfdWanted
from fared.core.ids import ADDRESS_BITS
from fared.core.links import InterfaceAddress, Link
from fared.core.streams import AdvertiseRouter, Listen, Listener, RouterHeard
from fared.paths.te.advertise import AdvertisedBandwidth
from fared.protocols.bgp.exchange import BgpExchange
from fared.protocols.bgp.instance import BgpInstance, BgpLink
from fared.protocols.bgp.neighbor import BgpSpeaker, NeighborPlace
from fared.protocols.bgp.packet.notification import Fault
from fared.protocols.bgp.reach import link_changed
from fared.protocols.bgp.session.events import NeighborSettings
from fared.protocols.bgp.session.session import BgpSession
from fared.protocols.bgp.settings import BgpLinkSettings, BgpNeighborSettings
from fared.protocols.igp.bfd_sessions import BfdSessions
from fared.protocols.igp.events import NeighborCleared


class Peering:
    """Keeps neighbors as settings and links say."""

    def __init__(self, instance: BgpInstance, exchange: BgpExchange) -> None:
        self._instance, self._exchange = instance, exchange
        self._process = instance.process
        self._numbers: dict[str, int] = {}
        """Of neighbors that there are, by address or interface."""
        self._assigned: dict[str, int] = {}
        """Of these, and of former ones: a link that returns has the same neighbor."""
        self._unnumbered: dict[int, tuple[BgpNeighborSettings, Link]] = {}
        """Neighbors of unnumbered links, up or down, by ifindex."""
        self._heard: dict[int, int] = {}
        """Link-local addresses of neighbors, by ifindex."""
        self._advertising: dict[int, AdvertiseRouter] = {}
        self._listeners: Listen | None = None
        self._bfd = BfdSessions(self._process.emit)
        self._stale, self._everything = True, False
        self._networks: _Networks = {}
        exchange.watch = self._watch

    # -- inputs -------------------------------------------------------------------------------

    def link_changed(self, link: Link, settings: BgpLinkSettings | None) -> None:
        """A link appeared, changed, or is down."""
        links, ifindex = self._instance.links, link.ifindex
        if settings is None or not link.up:
            links.pop(ifindex, None)
        elif ifindex in links:
            before = links[ifindex].bandwidth
            links[ifindex].link, links[ifindex].settings = link, settings
            if links[ifindex].bandwidth.resized(before):
                self._resized(ifindex)
        else:
            links[ifindex] = BgpLink(link, settings)
        if ifindex not in links:
            self._heard.pop(ifindex, None)
        self._unnumbered.pop(ifindex, None)
        if settings is not None and settings.neighbor is not None:
            self._unnumbered[ifindex] = settings.neighbor, link
        self._stale = True

    def removed(self, ifindex: int) -> None:
        """A link is gone."""
        self._instance.links.pop(ifindex, None)
        self._unnumbered.pop(ifindex, None)
        self._heard.pop(ifindex, None)
        self._process.forget(ifindex)
        self._stale = True

    def heard(self, event: RouterHeard) -> None:
        """A router advertisement was heard."""
        if self._heard.get(event.ifindex) != event.address:
            self._heard[event.ifindex] = event.address
            self._stale = True

    def settings_changed(self) -> None:
        """The settings of the engine are others."""
        self._stale = self._everything = True

    def _resized(self, ifindex: int) -> None:
        link = self._instance.links[ifindex]
        if link.advertised is not None:
            link.advertised = AdvertisedBandwidth(link.bandwidth, self._process.now)
        for neighbor in self._instance.neighbors.values():
            if neighbor.place is not None and neighbor.place.link.ifindex == ifindex:
                self._relinked(neighbor)

    def _relinked(self, neighbor: BgpSpeaker) -> None:
        """The link to a neighbor has another capacity, or other addresses."""
        for family in self._instance.ribs:
            link_changed(self._instance, neighbor, family)

    # -- neighbors ------------------------------------------------------------------------------

    def settle(self) -> None:
        """Begin and end sessions, as settings and links say."""
        if not self._stale:
            return
        self._stale = False
        self._networks = _networks(self._instance.links.values())
        wanted = dict(self._wanted())
        neighbors = self._instance.neighbors
        for key in [key for key in self._numbers if key not in wanted]:
            self._remove(neighbors[self._numbers.pop(key)])
        for key, (settings, link) in wanted.items():
            number = self._numbers.get(key)
            if number is None:
                number = self._assigned.setdefault(key, len(self._assigned) + 1)
                self._numbers[key] = number
                neighbors[number] = BgpSpeaker(number, settings, link)
                counted = self._process.counters.interfaces
                counted[_counted_as(neighbors[number])] = neighbors[number].counters
            neighbors[number].ifindex = None if link is None else link.ifindex
            self._follow(neighbors[number], settings)
        self._everything = False
        self._listen()
        self._advertise()

    def _wanted(self) -> Iterator[tuple[str, tuple[BgpNeighborSettings, Link | None]]]:
        """Yield the settings of all neighbors, and the link of unnumbered ones."""
        for one in self._instance.settings.neighbors:
            yield one.address or "", (one, None)
        for _, (settings, link) in sorted(self._unnumbered.items()):
            yield link.name, (settings, link)

    def _follow(self, neighbor: BgpSpeaker, settings: BgpNeighborSettings) -> None:
        """Have a neighbor at its place, with these settings."""
        before, neighbor.settings = neighbor.settings, settings
        place = self._place(neighbor) if settings.enabled else None
        session, former = neighbor.session, neighbor.place
        if session is not None:
            same = former is not None and place is not None and _same(former, place)
            neighbor.place = place if same else former
            if not same:
                why = "the link is down, or has other addresses" if settings.enabled else ""
                self._end(neighbor, why)
            elif not self._goes_on(session, self._session_settings(neighbor)):
                self._end(neighbor, "its settings are others", Fault.OTHER_CONFIGURATION_CHANGE)
            elif before != settings or former != place or self._everything:
                self._exchange.settings_changed(neighbor, before)
                if former != place:
                    self._relinked(neighbor)
        neighbor.place = place
        if neighbor.session is None and place is not None:
            restarting = self._instance.restarting_until is not None
            neighbor.speak(
                self._instance.surroundings, self._instance.settings, restarting=restarting
            )
        self._detect(neighbor)

    @staticmethod
    def _goes_on(session: BgpSession, wanted: NeighborSettings) -> bool:
        """Have a session with other settings go on, if they are for connecting only.

        So is a key: the neighbor has the hold time to change it, too.
        """
        before = session.settings
        same = replace(
            before,
            connect_retry=wanted.connect_retry,
            passive=wanted.passive,
            transport=replace(before.transport, key=wanted.transport.key),
            hostname=wanted.hostname,
        )
        if same == wanted:
            session.settings = wanted
        return same == wanted

    def _session_settings(self, neighbor: BgpSpeaker) -> NeighborSettings:
        assert neighbor.session is not None
        restarting = neighbor.session.settings.restarting
        return neighbor.session_settings(self._instance.settings, restarting=restarting)

    def _place(self, neighbor: BgpSpeaker) -> NeighborPlace | None:
        """Return where a neighbor is reached now."""
        if neighbor.ifindex is not None:
            found = self._instance.links.get(neighbor.ifindex)
            if found is None:
                return None
            link = found.link
            local, remote = link.link_local(), self._heard.get(neighbor.ifindex)
            return None if local is None or remote is None else NeighborPlace(link, local, remote)
        family, address = neighbor.address
        for length in sorted(self._networks[family], reverse=True):
            network = address >> (ADDRESS_BITS[family] - length)
            own = self._networks[family][length].get(network)
            if own is not None and own[1].address != address:
                return NeighborPlace(*own, address)
        return None

    def _end(
        self,
        neighbor: BgpSpeaker,
        reason: str,
        fault: Fault = Fault.ADMINISTRATIVE_SHUTDOWN,
    ) -> None:
        """End a session, whose place or settings are others; nothing is kept."""
        session = neighbor.session
        assert session is not None
        if reason:
            session.end(fault, reason)
        session.stop(neighbor.settings.description, fault)
        self._exchange.hear()
        self._exchange.drop(neighbor)
        self._process.timers.cancel(neighbor.held)
        neighbor.held = neighbor.session = None

    def _remove(self, neighbor: BgpSpeaker) -> None:
        if neighbor.session is not None:
            self._end(neighbor, "it is no neighbor any more", Fault.PEER_DECONFIGURED)
        self._bfd.use(neighbor.number, ())
        self._process.counters.forget(_counted_as(neighbor))
        del self._instance.neighbors[neighbor.number]

    def leave(self) -> None:
        """End all sessions: this router leaves."""
        for neighbor in self._instance.neighbors.values():
            if neighbor.session is not None:
                self._end(neighbor, "")
            self._bfd.use(neighbor.number, ())

    def clear(self, event: NeighborCleared) -> None:
        """Begin the session with a router on a link anew, or only ask and tell routes again."""
        for neighbor in self._instance.neighbors.values():
            agreed, place, session = neighbor.agreed, neighbor.place, neighbor.session
            if neighbor.held is not None and neighbor.name == event.held:
                self._exchange.release(neighbor)
            if agreed is None or place is None or session is None:
                continue
            if (place.link.ifindex, agreed.identifier) != (event.ifindex, event.node):
                continue
            if event.soft:
                self._exchange.renew(neighbor)
            else:
                session.end(Fault.ADMINISTRATIVE_RESET, "cleared here")

    # -- what the edge is to do -------------------------------------------------------------------

    def _listen(self) -> None:
        """Tell the edge who may connect."""
        found = [
            Listener(one.number, one.session.settings.transport)
            for one in self._instance.neighbors.values()
            if one.session is not None and one.held is None
        ]
        listen = Listen(tuple(found), self._instance.settings.port)
        if listen != self._listeners:
            self._listeners = listen
            self._process.emit(listen)

    def _advertise(self) -> None:
        """Ask for router advertisements on the links of unnumbered neighbors."""
        wanted: dict[int, AdvertiseRouter] = {}
        for ifindex, one in self._instance.links.items():
            near, link = one.link.link_local(), one.link
            if one.settings.neighbor is not None and near is not None:
                mac = link.hardware_address
                wanted[ifindex] = AdvertiseRouter(ifindex, link.name, near.address, mac)
        for ifindex, before in self._advertising.items():
            if ifindex not in wanted:
                self._process.emit(AdvertiseRouter(ifindex, before.interface, None))
        for ifindex, output in wanted.items():
            if self._advertising.get(ifindex) != output:
                self._process.emit(output)
        self._advertising = wanted

    # -- BFD (RFC 5882 §4) --------------------------------------------------------------------

    def _watch(self, neighbor: BgpSpeaker) -> None:
        """A session came up, ended, or is not to begin for a while."""
        self._detect(neighbor)
        self._listen()

    def _detect(self, neighbor: BgpSpeaker) -> None:
        """Have a BFD session with a neighbor whose session is, or was, established."""
        bfd, place = neighbor.settings.bfd, neighbor.place
        wanted: tuple[BfdWanted, ...] = ()
        if bfd is not None and place is not None and (neighbor.agreed or neighbor.bfd_up):
            size = ADDRESS_BITS[place.family] // 8
            local, remote = (
                each.to_bytes(size, "big") for each in (place.local.address, place.remote)
            )
            link = place.link
            wanted = (BfdWanted(link.ifindex, link.name, local, remote, bfd.session),)
        neighbor.bfd_up = neighbor.bfd_up and bool(wanted)
        self._bfd.use(neighbor.number, wanted)

    def bfd_changed(self, event: BfdChanged) -> None:
        """A BFD session came up, or failed."""
        for number in self._bfd.take(event):
            assert isinstance(number, int)
            neighbor = self._instance.neighbors[number]
            failed = event.status is BfdStatus.DOWN and neighbor.bfd_up
            neighbor.bfd_up = event.status is BfdStatus.UP
            if failed and neighbor.session is not None and neighbor.agreed is not None:
                neighbor.session.end(Fault.BFD_DOWN, f"BFD: {event.reason or 'down'}")
                self._exchange.hear()
                self._exchange.drop(neighbor)
            elif failed and neighbor.stale and event.independent:
                # §4.3: it does not forward any more; else BFD is down as the neighbor restarts
                why = f"BFD: {event.reason or 'down'}"
                name = neighbor.name
                self._process.log("warning", "bgp-routes-not-renewed", neighbor=name, reason=why)
                self._exchange.drop(neighbor)


def _counted_as(neighbor: BgpSpeaker) -> int:
    """Return the key of its counters: no ifindex, since a link may have several neighbors."""
    return -neighbor.number


_Networks = dict[int, dict[int, dict[int, tuple[Link, InterfaceAddress]]]]
"""By family, length, and the network shifted right."""


def _networks(links: Iterable[BgpLink]) -> _Networks:
    """Return the networks of links that neighbors may be in; of two links the first."""
    found: _Networks = {family: {} for family in ADDRESS_BITS}
    for one in sorted(links, key=lambda each: each.ifindex):
        for own in () if one.link.loopback else one.link.addresses:
            bits = ADDRESS_BITS[own.family] - own.prefix_length
            of_length = found[own.family].setdefault(own.prefix_length, {})
            of_length.setdefault(own.network >> bits, (one.link, own))
    return found


def _same(one: NeighborPlace, other: NeighborPlace) -> bool:
    """Whether a session goes on: over the same link, between the same addresses."""
    return (one.link.ifindex, one.local.address, one.remote) == (
        other.link.ifindex,
        other.local.address,
        other.remote,
    )
