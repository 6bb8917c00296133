"""Settings of each protocol for the routers, links and hosts that a ``FabricBuilder`` adds."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from fared.core.ids import AreaId, RouterId, SystemId
from fared.protocols.bgp.settings import (
    BgpLinkSettings,
    BgpNeighborSettings,
    BgpSettings,
)
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.settings import CircuitKind, CircuitSettings, IsisSettings
from fared.protocols.ospf.settings import AreaSettings, InterfaceSettings, NetworkType, OspfSettings
from fared.router.engine import EngineSettings
from fared.router.protocols import BGP, ISIS, OSPF


class Purpose(enum.Enum):
    """The purpose of an interface."""

    LOOPBACK = enum.auto()
    LINK = enum.auto()
    LAN = enum.auto()
    HOSTS = enum.auto()


_PASSIVE = (Purpose.LOOPBACK, Purpose.HOSTS)


class Levels(msgspec.Struct, frozen=True):
    """Levels and addressing of IS-IS on routers and links added from now on."""

    router: LevelSet = LevelSet.TWO
    link: LevelSet = LevelSet.TWO
    area: bytes = b"\x49\x00\x00"
    numbered: bool = True
    """Whether links have IPv4 addresses; else IPv4 goes over IPv6 next hops."""


class BuildScope(msgspec.Struct):
    """The scope of routers and links added from now on; each protocol reads its own part."""

    area: AreaId = AreaId(0)
    areas: tuple[AreaSettings, ...] = ()
    levels: Levels = Levels()
    prefix_suppression: bool = False
    """The networks between routers are not advertised."""


class ProtocolBuilder(Protocol):
    """Makes the settings of one protocol."""

    @property
    def proto(self) -> str:
        """The name of the protocol."""

    @property
    def ipv6(self) -> bool:
        """Whether the protocol routes IPv6."""

    def router(self, scope: BuildScope, name: str, router_id: int) -> EngineSettings:
        """Settings of its engine."""

    def port(self, scope: BuildScope, purpose: Purpose) -> Any:  # noqa: ANN401 - each its own
        """Settings of an interface."""


def _ospf_interface(area: AreaId) -> InterfaceSettings:
    return InterfaceSettings(area, hello_interval=1, router_dead_interval=4, rxmt_interval=1.0)


class OspfBuilder(msgspec.Struct, frozen=True):
    """OSPF; ``interface`` returns the settings of a link in an area."""

    interface: Callable[[AreaId], InterfaceSettings] = _ospf_interface
    proto: str = OSPF
    ipv6: bool = False

    def router(self, scope: BuildScope, name: str, router_id: int) -> OspfSettings:
        """Settings of the engine."""
        return OspfSettings(RouterId(router_id), hostname=name, areas=scope.areas)

    def port(self, scope: BuildScope, purpose: Purpose) -> InterfaceSettings:
        """Settings of an interface."""
        match purpose:
            case Purpose.LOOPBACK:
                loopback = NetworkType.LOOPBACK
                return InterfaceSettings(scope.area, network_type=loopback, passive=True, cost=0)
            case Purpose.HOSTS:
                return InterfaceSettings(scope.area, passive=True)
        link = replace(self.interface(scope.area), prefix_suppression=scope.prefix_suppression)
        return replace(link, network_type=NetworkType.BROADCAST) if purpose is Purpose.LAN else link


class IsisBuilder(msgspec.Struct, frozen=True):
    """IS-IS; each router has ``common`` with its own ids and levels."""

    common: IsisSettings
    proto: str = ISIS
    ipv6: bool = True

    def router(self, scope: BuildScope, name: str, router_id: int) -> IsisSettings:
        """Settings of the engine."""
        return replace(
            self.common,
            system_id=SystemId(router_id),
            areas=(scope.levels.area,),
            levels=scope.levels.router,
            hostname=name,
            router_id=router_id,
        )

    def port(self, scope: BuildScope, purpose: Purpose) -> CircuitSettings:
        """Settings of a circuit."""
        passive, lan = purpose in _PASSIVE, purpose is Purpose.LAN
        return CircuitSettings(
            CircuitKind.BROADCAST if lan else CircuitKind.POINT_TO_POINT,
            scope.levels.router if passive else scope.levels.link,
            hello_interval=1.0,
            hello_multiplier=4,
            passive=passive,
            prefix_suppression=scope.prefix_suppression and not passive,
        )


FIRST_PRIVATE_AS = 4_200_000_000
_EVERYTHING = BgpNeighborSettings(imports=("all",), exports=("all",), connect_retry=0.5)


class BgpBuilder(msgspec.Struct, frozen=True):
    """BGP between routers of one AS each, over unnumbered sessions (RFC 7938).

    ``neighbor``: settings of each session; each router has ``common`` with its own AS and id.
    """

    neighbor: BgpNeighborSettings = _EVERYTHING
    common: BgpSettings = BgpSettings(0, RouterId(0))
    proto: str = BGP
    ipv6: bool = True

    def router(self, scope: BuildScope, name: str, router_id: int) -> BgpSettings:
        """Settings of the engine."""
        del scope
        number = FIRST_PRIVATE_AS + (router_id & 0xFFFF)
        return replace(self.common, local_as=number, router_id=RouterId(router_id), hostname=name)

    def port(self, scope: BuildScope, purpose: Purpose) -> BgpLinkSettings:
        """Settings of a link."""
        del scope
        if purpose in _PASSIVE:
            return BgpLinkSettings(advertise=True)
        return BgpLinkSettings(self.neighbor if purpose is Purpose.LINK else None)
