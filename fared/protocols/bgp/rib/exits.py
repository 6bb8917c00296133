"""Where next hops lead (RFC 4271 §5.1.3): mostly to the neighbor that told them, over its link.

On a LAN a neighbor may name others, as route servers do (RFC 7947 §2.2.1). Each address that
packets are sent to is an exit with a number, that of the session if it is its usual one. Paths
with one exit have it once, whoever told them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Final

from fared.paths.ted.model import LocalLink
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.rib.graph import GroupGraph

Resolve = Callable[[BgpNextHop], LocalLink | None]
"""Returns the link with the address to send to; None: the next hop is not usable."""
_NOWHERE: Final = 0
_FIRST: Final = 1 << 32
"""Above the numbers of sessions."""


class Exits:
    """The exits of all sessions, and their links in the graph."""

    def __init__(self, graph: GroupGraph) -> None:
        self._graph = graph
        self._numbers: dict[Hashable, int] = {}
        """By interface, family and address."""
        self._users: dict[int, dict[int, None]] = {}
        """By exit, the sessions whose next hops lead there."""
        self._usual: dict[int, int] = {}
        """By session, the exit of its link."""
        self._found: dict[int, dict[BgpNextHop, int]] = {}
        self._recent: dict[int, tuple[BgpNextHop, int]] = {}
        """By session, the next hop that was asked for last: mostly it has no other."""
        self._resolve: dict[int, tuple[int, Resolve]] = {}
        """By session, the identifier of the router, and where its next hops lead."""
        self._available: dict[int, float | None] = {}
        self._last = _FIRST

    def set_link(
        self, session: int, identifier: int, link: LocalLink | None, resolve: Resolve | None = None
    ) -> bool:
        """Set the usual link of a session, or none; return whether a next hop leads elsewhere."""
        before, usual = self._found.pop(session, {}), self._usual.pop(session, _NOWHERE)
        self._resolve.pop(session, None)
        self._recent.pop(session, None)
        if resolve is not None:
            self._resolve[session] = identifier, resolve
        ways = {hop: None if resolve is None else resolve(hop) for hop in before}
        kept = {_key(one) for one in (link, *ways.values()) if one is not None}
        self._release(session, [one for key, one in self._numbers.items() if key not in kept])
        if link is not None:
            self._usual[session] = self._enter(session, identifier, link)
        self._found[session] = found = {
            hop: _NOWHERE if one is None else self._enter(session, identifier, one)
            for hop, one in ways.items()
        }
        if link is None and resolve is None:
            del self._found[session]
        return found != before or usual != self._usual.get(session, _NOWHERE)

    def set_available(self, session: int, available: float | None) -> None:
        """Set what load leaves of the link of a session."""
        self._available[session] = available
        for number, users in self._users.items():
            if session in users:
                self._graph.set_available(number, available)

    def usual(self, session: int) -> int:
        """Return the exit of the link of a session."""
        return self._usual.get(session, session)

    def of(self, session: int, next_hop: BgpNextHop) -> int:
        """Return the exit of a next hop that a session told, 0 for none."""
        recent = self._recent.get(session)
        if recent is not None and recent[0] is next_hop:
            return recent[1]
        known = self._resolve.get(session)
        if known is None:
            return self._usual.get(session, session)
        found = self._found[session].get(next_hop)
        if found is None:
            identifier, resolve = known
            link = resolve(next_hop)
            found = _NOWHERE if link is None else self._enter(session, identifier, link)
            self._found[session][next_hop] = found
        self._recent[session] = next_hop, found
        return found

    def keep(self, next_hops: Collection[BgpNextHop]) -> None:
        """Forget all next hops but these."""
        self._recent.clear()
        for session, known in self._found.items():
            gone = [hop for hop in known if hop not in next_hops]
            lost = {known.pop(hop) for hop in gone}
            self._release(session, lost.difference(known.values(), [self.usual(session)]))

    def _enter(self, session: int, identifier: int, link: LocalLink) -> int:
        key = _key(link)
        number = self._numbers.get(key)
        if number is None:
            number = session
            if session in self._users:
                self._last += 1
                number = self._last
            self._numbers[key] = number
        self._users.setdefault(number, {})[session] = None
        if self._graph.link(number) != link:
            self._graph.set_link(number, identifier, link)
            self._graph.set_available(number, self._available.get(session))
        return number

    def _release(self, session: int, numbers: Collection[int]) -> None:
        gone = set()
        for number in numbers:
            users = self._users.get(number, {})
            if session in users:
                del users[session]
                if not users:
                    del self._users[number]
                    self._graph.set_link(number, session, None)
                    gone.add(number)
        self._numbers = {key: one for key, one in self._numbers.items() if one not in gone}


def _key(link: LocalLink) -> Hashable:
    return link.ifindex, link.family, link.gateway
