"""How many prefixes one protocol uses of what routers advertise, and whose when there are too many.

The limit of a database counts LSAs or LSPs, of which one may list hundreds or thousands of
prefixes. Each prefix costs a row of the RIB, and a route of the kernel if it is reachable. So the
prefixes that become either have a limit of their own, which works as that of databases
(``database_limit``): of the prefixes that an LSA or LSP lists too many, the surplus is ignored,
until there is room. The database stays as it is, and is flooded as ever. This router's own prefixes
are always used.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fared.protocols.igp.database_limit import DatabaseLimit, LimitSettings, LimitView, Originators
from fared.protocols.igp.limit_shares import Paths

if TYPE_CHECKING:
    from fared.protocols.igp.process import Process

Source = TypeVar("Source", bound=Hashable)
"""The LSA or LSP that lists prefixes."""
Listed = TypeVar("Listed", bound=Hashable)


class _Used:
    """The prefixes in use, by originator."""

    def __init__(self) -> None:
        self.originators = Originators()
        self._total = 0

    def __len__(self) -> int:
        return self._total

    def add(self, originator: int, more: int) -> None:
        """Use so many more prefixes of an originator from now on, or fewer."""
        self._total += more
        count = self.originators[originator] + more
        if count:
            self.originators[originator] = count
        else:
            del self.originators[originator]


class PrefixLimit(Generic[Source]):
    """The limit of all prefixes of one protocol.

    ``settings`` returns the present limits, ``on_path`` the originators on a path from this router,
    and their neighbors. ``read`` reads LSAs or LSPs of the database again; None: all of them.
    """

    def __init__(
        self,
        process: Process[Any],
        *,
        settings: Callable[[], LimitSettings],
        on_path: Callable[[], Paths],
        read: Callable[[Iterable[Source] | None], None],
    ) -> None:
        self._used = _Used()
        self._of: dict[Source, int] = {}
        """By source, as far as ``take`` counts them."""
        self._limit: DatabaseLimit[Source] = DatabaseLimit(
            process,
            self._used,
            "all",
            settings=settings,
            on_path=on_path,
            ask=read,
            prefixes=True,
        )

    def used(self, source: Source) -> int:
        """How many prefixes of an LSA or LSP are in use."""
        return self._of.get(source, 0)

    def take(self, source: Source, originator: int, listed: int, *, own: bool = False) -> int:
        """An LSA or LSP now lists so many prefixes; return how many of them to use.

        It is never fewer than before, unless it lists fewer.
        """
        count = self.admit(source, originator, self.used(source), listed, own=own)
        if count:
            self._of[source] = count
        else:
            self._of.pop(source, None)
        return count

    def admit(
        self, source: Source, originator: int, before: int, listed: int, *, own: bool = False
    ) -> int:
        """Like ``take``, where the caller remembers how many were used before.

        So an LSA with one prefix takes no entry of a dictionary here.
        """
        if listed == before:
            return listed
        count = listed
        if listed > before and not own:
            count = before + self._limit.room(originator, listed - before)
        if count != before:
            self._used.add(originator, count - before)
        if count < listed:
            self._limit.ignore(source, originator, listed - count)
        return count

    def reset(self) -> None:
        """Zero the counts, and read again what was ignored (by an operator)."""
        self._limit.reset()

    def view(self) -> LimitView:
        """The limit, and how many prefixes are in use."""
        return self._limit.view()


def known_first(
    listed: Iterable[Listed], known: Container[Listed], most: int
) -> dict[Listed, None]:
    """Return ``most`` of the prefixes that an LSA or LSP lists: those known from before first."""
    prefixes = dict.fromkeys(listed)
    kept = [prefix for prefix in prefixes if prefix in known]
    new = (prefix for prefix in prefixes if prefix not in known)
    return dict.fromkeys([*kept, *new][:most])
