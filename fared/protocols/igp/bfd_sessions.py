"""The BFD sessions that an engine wants: one for each address of a neighbor, whoever asks for it.

Two adjacencies with one router on a LAN, of level 1 and level 2, share a session.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from msgspec.structs import replace

from fared.core.bfd import BfdChanged, BfdStatus, BfdWanted

_Key = tuple[int, bytes]


class BfdSessions:
    """The wanted sessions of each user (a neighbor or an adjacency), and their status."""

    def __init__(self, emit: Callable[[BfdWanted], None]) -> None:
        self._emit = emit
        self._wanted: dict[Hashable, tuple[BfdWanted, ...]] = {}
        self._status: dict[_Key, BfdStatus] = {}

    def use(self, user: Hashable, wanted: tuple[BfdWanted, ...]) -> None:
        """Run exactly these sessions for a user; other users keep theirs."""
        before = self._wanted.get(user, ())
        if wanted == before:
            return
        self._wanted.pop(user, None)
        others = {item for items in self._wanted.values() for item in items}
        if wanted:
            self._wanted[user] = wanted
        present = {_key(item) for item in others.union(wanted)}
        for item in before:
            if _key(item) not in present:
                self._status.pop(_key(item), None)
                self._emit(replace(item, settings=None))
        for item in wanted:
            if item not in before and item not in others:
                self._emit(item)

    def take(self, changed: BfdChanged) -> list[Hashable]:
        """Store the status of a session; return its users, none if it is not wanted any more."""
        key = (changed.ifindex, changed.remote)
        users = [user for user, items in self._wanted.items() if any(_key(i) == key for i in items)]
        if users:
            self._status[key] = changed.status
        return users

    def status_of(self, user: Hashable) -> dict[bytes, BfdStatus]:
        """Return the status of a user's sessions, by remote address; Down before any is known."""
        return {
            item.remote: self._status.get(_key(item), BfdStatus.DOWN)
            for item in self._wanted.get(user, ())
        }


def _key(wanted: BfdWanted) -> _Key:
    return wanted.ifindex, wanted.remote
