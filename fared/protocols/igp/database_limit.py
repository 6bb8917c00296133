"""How many LSAs or LSPs one database holds, and which it still accepts when full.

A neighbor can originate, or forge, more than the memory of a router. So a database has a limit, as
with ``max-lsa`` of other routers and Juniper's database-protection; but no adjacency ends:

- from three quarters of the limit on, the log warns;
- at the limit, only LSAs of routers on a path from here are accepted, and of their neighbors, and
  of those behind one neighbor no more than its share (``limit_shares``);
- beyond it by a quarter, nothing is accepted that is not in the database already. So the memory is
  bounded, whatever neighbors forge.

Newer instances of LSAs in the database are always accepted, as are this router's own LSAs and the
router LSA of a neighbor. One originator has a limit of its own. An LSA that is not accepted is
ignored: acknowledged and counted, but neither installed nor flooded. The engine asks for it again
when there is room, or when its originator has come onto a path: a router may be heard of before the
router that lists it.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec

from fared.protocols.igp.limit_shares import Paths, Shares

if TYPE_CHECKING:
    from fared.protocols.igp.process import Process

RECHECK: Final = 5.0
"""Seconds between two looks at a full database: whether there is room, and who is on a path."""
MOST_MISSED: Final = 4096
"""Of so many ignored LSAs or LSPs, the latest, a database remembers which they were."""
_WARN_AT, _ROOM_AT, _PATHS_UP_TO = 0.75, 0.9, 1.25
_PATHS_KEPT = 1.0
"""Seconds for which the originators on a path are not computed again."""


class LimitSettings(msgspec.Struct, frozen=True):
    """``most``: LSAs or LSPs in one database; ``of_originator``: those of one other router."""

    most: int
    of_originator: int


DEFAULT_PREFIX_LIMIT: Final = LimitSettings(most=600_000, of_originator=120_000)
"""Of the prefixes that one protocol uses (``prefix_limit``); of a database, each protocol's own."""


class Fullness(enum.StrEnum):
    """How full a database is. FULL: it ignores, or has lately ignored, new LSAs or LSPs."""

    ROOM = "room"
    WARNING = "warning"
    FULL = "full"


class LimitView(msgspec.Struct, frozen=True):
    """A limited database: ``times`` it was full, ``ignored`` LSAs or LSPs since the start."""

    entries: int
    limit: int
    of_originator: int
    state: Fullness
    times: int
    ignored: int


Item = TypeVar("Item", bound=Hashable)
"""What identifies an LSA or LSP, and whom it can be asked of."""


class Originators(Counter[int]):
    """How many LSAs or LSPs each originator has in a database."""

    def left(self, originator: int) -> None:
        """One of them has left the database."""
        self[originator] -= 1
        if not self[originator]:
            del self[originator]


class LimitedDatabase(Protocol):
    """A database, with the entries of each originator counted."""

    originators: Originators

    def __len__(self) -> int:
        """How many entries there are."""


class DatabaseLimit(Generic[Item]):
    """The limit of one database.

    ``name`` is that of the database in the log. ``settings`` returns the present limits,
    ``on_path`` the originators on a path from this router, and their neighbors. ``ask`` requests
    ignored LSAs again; None: more of them than are known. ``prefixes``: what is limited are the
    prefixes that LSAs or LSPs list (``prefix_limit``), not these.
    """

    def __init__(
        self,
        process: Process[Any],
        database: LimitedDatabase,
        name: str,
        *,
        settings: Callable[[], LimitSettings],
        on_path: Callable[[], Paths],
        ask: Callable[[Iterable[Item] | None], None],
        prefixes: bool = False,
    ) -> None:
        self._process = process
        self._database = database
        self._name = name
        self._settings = settings
        self._on_path = on_path
        self._ask = ask
        self._prefixes = prefixes
        self._paths = Paths()
        self._shares = Shares()
        self._paths_until = -math.inf
        self._missed: dict[Hashable, dict[Item, int]] = {}
        """Originators by who sent what was ignored: a neighbor that sends much hides no other."""
        self._missed_more = False
        self.state = Fullness.ROOM
        self.times = 0
        self.ignored = 0

    def admits(self, originator: int, more: int = 0) -> bool:
        """Whether a new LSA or LSP of another router may come in; ``more`` are already coming."""
        settings = self._settings()
        if self._database.originators[originator] >= settings.of_originator:
            return False
        entries = len(self._database) + more
        if entries < settings.most * _WARN_AT:
            return True
        if self.state is Fullness.ROOM:
            self._enter(Fullness.WARNING)
        if entries < settings.most:
            return True
        return self._beyond(originator, 1, entries) > 0

    def is_ample(self, more: int) -> bool:
        """Whether ``admits`` so many, whoever originated them, and warns of none of them."""
        settings = self._settings()
        enough = min(settings.most * _WARN_AT, settings.of_originator)
        return len(self._database) + more < enough

    def room(self, originator: int, wanted: int) -> int:
        """For how many more entries of another router, at most ``wanted``, there is room now."""
        settings, entries = self._settings(), len(self._database)
        most = settings.most
        left = settings.of_originator - self._database.originators[originator]
        if wanted <= left and entries + wanted < most * _WARN_AT:  # as nearly always
            return wanted
        found = max(0, min(wanted, most - entries, left))
        if found < min(wanted, left):
            found += self._beyond(originator, min(wanted, left) - found, max(entries, most))
        if entries + found >= settings.most * _WARN_AT and self.state is Fullness.ROOM:
            self._enter(Fullness.WARNING)
        return found

    def _beyond(self, originator: int, wanted: int, entries: int) -> int:
        """For how many more entries there is room beyond the limit, which has ``entries``."""
        most = self._settings().most
        end = int(most * _PATHS_UP_TO)
        if entries >= end:
            return 0
        paths, known = self._paths_now(), self._database.originators[originator]
        wanted = min(wanted, end - entries)
        return self._shares.grant(originator, paths, wanted, end - most, known)

    def ignore(
        self, item: Item, originator: int, count: int = 1, *, sender: Hashable = None
    ) -> None:
        """An LSA or LSP of ``sender`` has been ignored, or ``count`` entries that it lists."""
        self.ignored += count
        self._missed.setdefault(sender, {})[item] = originator
        if sum(map(len, self._missed.values())) > MOST_MISSED:
            most = max(self._missed.values(), key=len)
            del most[next(iter(most))]
            self._missed_more = True
        counter = "ignored-prefixes" if self._prefixes else "ignored"
        self._process.counters.lsdb[counter] += count
        if self.state is not Fullness.FULL:
            self.times += 1
            self._enter(Fullness.FULL)
            self._recheck_later()

    def reset(self) -> None:
        """Zero the counts, and ask neighbors again for what was ignored (by an operator)."""
        self.times = self.ignored = 0
        if self.state is Fullness.FULL:
            self._leave()

    def view(self) -> LimitView:
        """The limit, and how full the database is."""
        settings = self._settings()
        return LimitView(
            len(self._database),
            settings.most,
            settings.of_originator,
            self.state,
            self.times,
            self.ignored,
        )

    def _paths_now(self) -> Paths:
        now = self._process.now
        if now >= self._paths_until:
            self._paths, self._paths_until = self._on_path(), now + _PATHS_KEPT
            self._shares.refresh(self._database.originators.__getitem__)
        return self._paths

    def _enter(self, state: Fullness) -> None:
        self.state = state
        full = state is Fullness.FULL
        if self._prefixes:
            event = "prefixes-full" if full else "prefixes-nearly-full"
        else:
            event = "database-full" if full else "database-nearly-full"
        self._log("error" if full else "warning", event)

    def _log(self, level: str, event: str) -> None:
        self._process.log(
            level,
            f"{self._process.name}-{event}",
            database=self._name,
            entries=len(self._database),
            limit=self._settings().most,
            ignored=self.ignored,
        )

    def _recheck_later(self) -> None:
        self._process.timers.arm(self._process.now + RECHECK, self._recheck)

    def _recheck(self) -> None:
        if self.state is not Fullness.FULL:
            return
        settings, database = self._settings(), self._database
        of_one = max(database.originators.values(), default=0)
        if len(database) < settings.most * _ROOM_AT and of_one < settings.of_originator:
            self._leave()
            return
        again: dict[Item, None] = {}
        for missed in self._missed.values():
            found = [item for item, originator in missed.items() if self.admits(originator)]
            for item in found:
                del missed[item]
            again.update(dict.fromkeys(found))
        if again:
            self._ask(again)
        self._recheck_later()

    def _leave(self) -> None:
        few = len(self._database) < self._settings().most * _WARN_AT
        self.state = Fullness.ROOM if few else Fullness.WARNING
        event = "prefixes-have-room" if self._prefixes else "database-has-room"
        self._log("info", event)
        missed, self._missed = self._missed, {}
        more, self._missed_more = self._missed_more, False
        self._ask(None if more else dict.fromkeys(chain.from_iterable(missed.values())))
