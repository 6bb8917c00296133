"""The routing protocols: a value for each, with all that the packages above the engines need.

Router, runner and views use these values, under the names in the settings; a new protocol is an
engine and an entry here. An engine is imported only if it is configured, since it is a tenth of a
daemon's memory and start-up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from fared.core.ids import BACKBONE, NodeId, dotted, isis_node
from fared.core.rng import Rng
from fared.router.engine import Engine

if TYPE_CHECKING:
    from fared.protocols.bgp.settings import BgpSettings
    from fared.protocols.isis.settings import IsisSettings
    from fared.protocols.ospf.settings import OspfSettings

OSPF = "ospf"
ISIS = "isis"
BGP = "bgp"
_LEVEL_2 = 2


class Started(msgspec.Struct, frozen=True):
    """A started engine, the TED vertex of this router, and the address families that it routes."""

    engine: Engine
    root: NodeId
    families: tuple[int, ...]


class RoutingProtocol(msgspec.Struct, frozen=True):
    """A routing protocol. Its name is for files, documents and labels, its title for text.

    ``packet``, ``neighbor`` and ``entry`` (of the database) are its own terms. ``preference`` is
    the default of other daemons, among them FRR: the lower one wins.
    """

    name: str
    title: str
    packet: str
    neighbor: str
    entry: str
    preference: int
    show_area: Callable[[int], str]
    """Formats an area, or a level."""
    start: Callable[[Any, Rng], Started]
    """Creates an engine from settings."""
    backbone: int = BACKBONE
    """The area, or level, that connects all others."""


def _start_ospf(settings: OspfSettings, rng: Rng) -> Started:
    from fared.protocols.ospf.engine import OspfEngine  # noqa: PLC0415 - where it is spoken

    return Started(OspfEngine(settings, rng), NodeId(settings.router_id), (4,))


def _start_isis(settings: IsisSettings, rng: Rng) -> Started:
    from fared.protocols.isis.engine import IsisEngine  # noqa: PLC0415 - where it is spoken

    return Started(IsisEngine(settings, rng), isis_node(settings.system_id), settings.families)


def _start_bgp(settings: BgpSettings, rng: Rng) -> Started:
    from fared.protocols.bgp.engine import BgpEngine  # noqa: PLC0415 - where it is spoken

    return Started(BgpEngine(settings, rng), NodeId(settings.router_id), settings.families)


def _level(level: int) -> str:
    return f"level-{level}"


def _table(_: int) -> str:
    return "unicast"


PROTOCOLS: Mapping[str, RoutingProtocol] = MappingProxyType(
    {
        OSPF: RoutingProtocol(OSPF, "OSPF", "packet", "neighbor", "LSA", 110, dotted, _start_ospf),
        ISIS: RoutingProtocol(
            ISIS, "IS-IS", "PDU", "adjacency", "LSP", 115, _level, _start_isis, _LEVEL_2
        ),
        BGP: RoutingProtocol(BGP, "BGP", "message", "neighbor", "path", 20, _table, _start_bgp),
    }
)
