"""The headers of some LSAs, as in one database description, whose ages are computed together.

Neighbors of a fabric describe the same tens of thousands of LSAs, each of them: what is done for
each header and neighbor takes most of the time in which a router joins. So both directions work on
pages of hundreds of headers: ``database_summary`` sends them, ``KnownPages`` recognizes them.

``KnownPages`` is a fast path beside ``Exchange._consider``: tests/ospf/test_header_page.py proves
them equal; row ``descriptions of known LSAs``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fared.protocols.ospf.lsdb import LsaEntry, Lsdb
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, MAX_AGE, MAX_AGE_DIFF, instance_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORDS = LSA_HEADER_SIZE // 2
_MOST_PAGES = 2048
_current = attrgetter("current")


class HeaderPage(msgspec.Struct):
    """LSAs, and what their ages are computed from.

    ``databases`` hold them, and had replaced ``replaced`` LSAs when all of these were current.
    """

    entries: Sequence[LsaEntry]
    base_ages: NDArray[np.int64]
    installed_at: NDArray[np.float64]
    databases: tuple[Lsdb, ...]
    replaced: int

    @classmethod
    def of(cls, entries: Sequence[LsaEntry]) -> HeaderPage:
        """The page of these LSAs, which are current."""
        databases = tuple({entry.lsdb for entry in entries})
        return cls(
            entries,
            np.array([entry.base_age for entry in entries], np.int64),
            np.array([entry.installed_at for entry in entries], np.float64),
            databases,
            _replaced(databases),
        )

    @property
    def current(self) -> bool:
        """Whether none of the LSAs has been replaced.

        Databases grow while neighbors join, and hardly any LSA is replaced: then there is none to
        look at.
        """
        replaced = _replaced(self.databases)
        if replaced != self.replaced:
            if False in map(_current, self.entries):
                return False
            self.replaced = replaced
        return True

    def ages(self, now: float) -> NDArray[np.int64]:
        """The LS ages now; those of MaxAge and above are at MaxAge."""
        ages: NDArray[np.int64] = self.base_ages + (now - self.installed_at).astype(np.int64)
        return ages


def _replaced(databases: tuple[Lsdb, ...]) -> int:
    return sum([lsdb.replaced for lsdb in databases])


def rows_of(headers: bytes | bytearray) -> NDArray[Any]:
    """Packed headers as rows of 16-bit words; the first word is the age."""
    return np.frombuffer(headers, ">u2").reshape(-1, _WORDS)


class KnownPages:
    """Recognizes descriptions that hold only instances of a database.

    Routers that describe in the same order describe the same pages: those are compared as bytes.
    """

    def __init__(self) -> None:
        self._pages: dict[bytes, tuple[bytes, HeaderPage]] = {}

    def clear(self) -> None:
        """Forget all pages: no neighbor describes its database any more."""
        self._pages.clear()

    def recognized(self, headers: bytes, databases: Collection[Lsdb], now: float) -> bool:
        """Whether one of the databases has all that a neighbor describes (§13.1)."""
        rows = rows_of(headers)
        instances = rows[:, 1:].tobytes()
        page = self._find(headers, instances, databases)
        if page is None:
            return False
        # RFC 2328 §13.1: equal fields are the same instance unless the ages tell them apart
        ours, theirs = page.ages(now), rows[:, 0].astype(np.int64)
        return bool(
            ours.max() < MAX_AGE
            and theirs.max() < MAX_AGE
            and np.abs(ours - theirs).max() <= MAX_AGE_DIFF
        )

    def _find(
        self, headers: bytes, instances: bytes, databases: Collection[Lsdb]
    ) -> HeaderPage | None:
        """Return the page of these headers, known or new; None: no database has all of them."""
        first = instance_of(headers)
        known, page = self._pages.get(first, (b"", None))
        if page is not None and known == instances and page.current:
            return page if page.entries[0].lsdb in databases else None
        size = len(first)
        split = [instances[at : at + size] for at in range(0, len(instances), size)]
        for lsdb in databases:
            database = lsdb.instances()
            entries = [entry for entry in map(database.get, split) if entry is not None]
            if len(entries) == len(split):
                page = HeaderPage.of(entries)
                if len(self._pages) >= _MOST_PAGES:
                    self._pages.clear()
                self._pages[first] = instances, page
                return page
        return None
