"""Which entries ``show database TYPE ID`` means: a type, an id, a router's name, or ``self``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext

SELF: Final = "self"


class WantedEntries(NamedTuple):
    """The entries that are asked for; ``routers``: the ids of routers with the name ``id``.

    ``own``: those of this router. ``detailed``: with their contents.
    """

    kind: str | None
    id: str | None
    own: bool
    detailed: bool
    routers: frozenset[int]

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self.kind is None and self.id is None and not self.own


def wanted_entries(
    context: ViewContext, kind: str | None, id_: str | None, is_type: Callable[[str], bool]
) -> WantedEntries:
    """Return what two words mean, whichever comes first.

    A word that is the name of a router is that before it is a type. ``self`` alone lists entries.
    """
    routers = _routers(context, kind)
    if kind is not None and id_ is None and (routers or not is_type(kind)):
        kind, id_ = None, kind
    elif kind is not None and id_ is not None and not is_type(kind) and is_type(id_):
        kind, id_ = id_, kind
    own = id_ == SELF and not _routers(context, SELF)
    detailed = id_ is not None and not (own and kind is None)
    return WantedEntries(kind, None if own else id_, own, detailed, _routers(context, id_))


def _routers(context: ViewContext, name: str | None) -> frozenset[int]:
    named = context.hostnames.items()
    return frozenset(node for node, hostname in named if hostname == name)
