"""Adj-RIBs-In of all neighbors (RFC 4271 §3.2), and the groups of prefixes with equal paths.

A table has a row for each prefix, with the number of a path (``paths``) for each neighbor. Prefixes
with equal rows are a group. Rows that change are marked; ``regroup`` looks at them, and only them.
A group whose prefixes all change alike remains the same group, with another row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fared.core.ids import Prefix
from fared.protocols.bgp.packet.attributes import PathAttributes
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.rib.decision import PeerPath
from fared.protocols.bgp.rib.paths import BgpPeer, PathTable

Numbers = NDArray[np.int64]
_ROWS, _PLACES, _PART = 64, 4, 4
"""Room at first, and which part more is made each time: all of it is memory, used or not."""
_PATH = np.dtype(np.int32)
RECENT: Final = 1024
"""Groups that are gone, and whose numbers are not used again yet: people still read of them."""


class Moved(NamedTuple):
    """Prefixes that left one group for another, 0 for none."""

    before: int
    after: int
    numbers: list[int]


class Regrouped(NamedTuple):
    """What ``regroup`` did: groups with another row than before, or no more, and who moved."""

    changed: set[int]
    gone: set[int]
    moved: list[Moved]


class AdjRibIn:
    """The paths of all neighbors to the prefixes of one family."""

    def __init__(self) -> None:
        self.paths = PathTable()
        self.prefixes: list[Prefix] = []
        """By their numbers, which may pass to other prefixes (``sweep``)."""
        self.groups = np.zeros(_ROWS, np.int32)
        """The group of each prefix, 0 for none."""
        self.members: dict[int, set[int]] = {}
        """The prefixes of each group."""
        self._numbers: dict[Prefix, int] = {}
        self._free: list[int] = []
        self._table = np.zeros((_ROWS, _PLACES), _PATH)
        self._dirty = np.zeros(_ROWS, bool)
        self._peers: list[BgpPeer | None] = [None] * _PLACES
        self._places: dict[int, int] = {}
        self._vacant: list[int] = []
        self._counts: dict[int, int] = {}
        self._stale: dict[int, NDArray[np.bool_]] = {}
        self._rows: dict[int, bytes] = {}
        self._by_row: dict[bytes, int] = {}
        self._unused: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def settled(self) -> bool:
        """Whether all prefixes are in their groups."""
        return not self._dirty.any()

    @property
    def backlog(self) -> int:
        """The number of prefixes that are to be put into groups."""
        return int(np.count_nonzero(self._dirty))

    # -- what neighbors announce --------------------------------------------------------------

    def add(self, peer: BgpPeer) -> None:
        """Take in a neighbor, or its other settings, which count for what comes from now on."""
        place = self._places.get(peer.number)
        if place is None:
            self._vacate()
            if None not in self._peers:
                self._widen()
            place = self._peers.index(None)
            self._places[peer.number], self._counts[place] = place, 0
        self._peers[place] = peer

    def announce(
        self,
        peer: int,
        prefixes: Sequence[Prefix],
        attributes: PathAttributes,
        next_hop: BgpNextHop,
    ) -> None:
        """Learn paths with these attributes; raises KeyError for a neighbor not known."""
        place = self._places[peer]
        known = self._peers[place]
        assert known is not None
        path = self.paths.number(attributes, next_hop, receive=known.receive)
        get = self._numbers.get
        numbers = [get(prefix, -1) for prefix in prefixes]
        if -1 in numbers:
            numbers = [self._number(prefix) for prefix in prefixes]
        self._set(place, np.array(numbers, np.int64), path)

    def withdraw(self, peer: int, prefixes: Iterable[Prefix]) -> None:
        """Forget the paths of a neighbor to prefixes; one that it has not announced is ignored."""
        numbers = [self._numbers[prefix] for prefix in prefixes if prefix in self._numbers]
        self._set(self._places[peer], np.array(numbers, np.int64), 0)

    def lose(self, peer: int) -> None:
        """Forget a neighbor with all its paths."""
        place = self._places.pop(peer)
        self._stale.pop(place, None)
        self._set(place, self._table[:, place].nonzero()[0], 0)
        self._vacant.append(place)

    def mark_stale(self, peer: int) -> None:
        """Expect that all paths of a neighbor come again (RFC 4724 §4.2, RFC 7313 §4)."""
        place = self._places[peer]
        self._stale[place] = self._table[:, place] != 0

    def end_of_rib(self, peer: int) -> int:
        """Withdraw what has not come again; return how many paths."""
        place = self._places[peer]
        stale = self._stale.pop(place, None)
        if stale is None:
            return 0
        numbers = stale.nonzero()[0]
        self._set(place, numbers, 0)
        return len(numbers)

    def announced(self, peer: int) -> list[Prefix]:
        """Return the prefixes to which a neighbor has a path."""
        numbers = self._table[:, self._places[peer]].nonzero()[0]
        return [self.prefixes[number] for number in numbers.tolist()]

    def groups_of(self, peer: int) -> list[int]:
        """Return the groups to which a neighbor has a path."""
        place = self._places.get(peer)
        if place is None:
            return []
        groups = np.unique(self.groups[self._table[:, place] != 0])
        return [group for group in groups.tolist() if group in self.members]

    def count(self, peer: int) -> int:
        """Return the number of paths of a neighbor."""
        return self._counts[self._places[peer]]

    def _set(self, place: int, numbers: Numbers, path: int) -> None:
        if len(numbers) > 1:
            # a message may list a prefix twice
            numbers = np.unique(numbers)
        if not path:
            different = numbers[self._table[numbers, place] != 0]
            self._counts[place] -= len(different)
        else:
            known = self._table[numbers, place]
            different = numbers[known != path]
            self._counts[place] += len(known) - int(np.count_nonzero(known))
        self._table[different, place] = path
        self._dirty[different] = True
        stale = self._stale.get(place)
        if stale is not None:
            stale[numbers[numbers < len(stale)]] = False

    def _number(self, prefix: Prefix) -> int:
        found = self._numbers.get(prefix)
        if found is not None:
            return found
        if self._free:
            found = self._free.pop()
            self.prefixes[found] = prefix
        else:
            found = len(self.prefixes)
            self.prefixes.append(prefix)
            if found == len(self.groups):
                more = len(self.groups) // _PART
                self._table = np.pad(self._table, ((0, more), (0, 0)))
                self._dirty = np.pad(self._dirty, (0, more))
                self.groups = np.pad(self.groups, (0, more))
        self._numbers[prefix] = found
        return found

    def _vacate(self) -> None:
        """Have the places of neighbors that were lost again, once no row has paths of them."""
        if self._vacant and self.settled:
            for place in self._vacant:
                self._peers[place] = None
            self._vacant.clear()

    def _widen(self) -> None:
        """Make room for more neighbors."""
        more = len(self._peers) // _PART
        self._peers += [None] * more
        self._table = np.pad(self._table, ((0, 0), (0, more)))
        none = bytes(more * _PATH.itemsize)
        self._rows = {group: row + none for group, row in self._rows.items()}
        self._by_row = {row: group for group, row in self._rows.items()}

    # -- groups ---------------------------------------------------------------------------------

    def regroup(self, limit: int) -> Regrouped:
        """Put at most so many prefixes with other paths into their groups."""
        numbers = self._dirty.nonzero()[0][:limit]
        self._dirty[numbers] = False
        data, size = self._table[numbers].tobytes(), len(self._peers) * _PATH.itemsize
        alike: dict[tuple[int, bytes], list[int]] = {}
        at = 0
        for number, group in zip(numbers.tolist(), self.groups[numbers].tolist(), strict=True):
            alike.setdefault((group, data[at : at + size]), []).append(number)
            at += size
        done = Regrouped(set(), set(), [])
        for (group, row), some in alike.items():
            self._move(group, row, some, done)
        done.changed.difference_update(done.gone)
        self._unused += done.gone
        return done

    def _move(self, before: int, row: bytes, some: list[int], done: Regrouped) -> None:
        after = self._by_row.get(row, 0)
        if not after and any(row):
            if before and len(some) == len(self.members[before]):
                del self._by_row[self._rows[before]]
                self._enter(before, row, done)
                return
            after = self._unnamed(done)
            self.members[after] = set()
            self._enter(after, row, done)
        if after == before:
            return
        self.groups[some] = after
        done.moved.append(Moved(before, after, some))
        if after:
            self.members[after].update(some)
        if before:
            left = self.members[before]
            left.difference_update(some)
            if not left:
                del self.members[before], self._by_row[self._rows.pop(before)]
                done.gone.add(before)

    def _unnamed(self, done: Regrouped) -> int:
        """Return a number for a group: one that was used long ago, or a new one."""
        if len(self._unused) > RECENT:
            return self._unused.popleft()
        return len(self.members) + len(self._unused) + len(done.gone) + 1

    def _enter(self, group: int, row: bytes, done: Regrouped) -> None:
        self._rows[group] = row
        self._by_row[row] = group
        done.changed.add(group)

    def number(self, prefix: Prefix) -> int | None:
        """Return the number of a prefix, None of one that nobody knows."""
        return self._numbers.get(prefix)

    def group(self, prefix: Prefix) -> int:
        """Return the group of a prefix, 0 for none."""
        number = self._numbers.get(prefix)
        return 0 if number is None else int(self.groups[number])

    def kinds(self, group: int) -> bytes:
        """Return the kinds of the paths of a group: with equal ones, equal paths are chosen."""
        return self.paths.kinds[np.frombuffer(self._rows[group], _PATH)].tobytes()

    def candidates(self, group: int, places: Iterable[int] | None = None) -> list[PeerPath]:
        """Return the paths of a group, or of those the ones at some places of the list."""
        row = np.frombuffer(self._rows[group], _PATH)
        at = row.nonzero()[0]
        if places is not None:
            at = at[list(places)]
        peers, paths = self._peers, self.paths
        found = []
        for place, number in zip(at.tolist(), row[at].tolist(), strict=True):
            peer = peers[place]
            assert peer is not None
            found.append(PeerPath(peer, paths[number]))
        return found

    def sweep(self, sent: Iterable[NDArray[np.int32]] = ()) -> None:
        """Forget prefixes without paths that no neighbor knows, and paths to no prefix.

        ``sent`` are the tables of Adj-RIBs-Out. In proportion to all: after large changes.
        """
        kept = self._table.any(1) | self._dirty | (self.groups != 0)
        for table in sent:
            size = min(len(table), len(kept))
            kept[:size] |= table[:size] != 0
        for number in (~kept[: len(self.prefixes)]).nonzero()[0].tolist():
            if self._numbers.pop(self.prefixes[number], None) is not None:
                self._free.append(number)
        rows = np.frombuffer(b"".join(self._rows.values()), _PATH)
        self.paths.sweep(np.concatenate([np.unique(self._table), rows]))
