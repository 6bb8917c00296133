"""The ``bgp`` section: BGP on this router, with path bandwidth (RFC 10005)."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from msgspec import field

from fared.config import quantities, values
from fared.config.bgp_instead import ROUTER, SHARE
from fared.config.bgp_neighbor import AsNumber, BgpNeighbor, NeighborKey, is_address
from fared.config.filters import FilterName
from fared.config.globs import MostExact
from fared.config.igp import Families, Sources, SpfDelays, families_of
from fared.config.section import Reload, Section
from fared.config.shapes import EMPTY_IS_MEANT, Scalar
from fared.core.ids import Prefix, parse_prefix
from fared.core.links import InterfaceAddress, Link
from fared.protocols.bgp.settings import (
    INTERNAL_PREFERENCE,
    PREFERENCE,
    BgpRestartSettings,
    BgpSettings,
    PathBandwidthSettings,
)

_WHAT_NETWORK = "a prefix such as 10.0.2.0/24, or an interface or glob whose networks are meant"
_MAX_U32 = 0xFFFF_FFFF
_ENGINE, _RESTART = BgpSettings(1, 1), BgpRestartSettings()  # type: ignore[arg-type]
_BANDWIDTH = PathBandwidthSettings()
"""The defaults of the engine."""


def _parse_network(value: object) -> Prefix | str:
    if isinstance(value, str) and ("/" in value or is_address(value)):
        return parse_prefix(value)
    return values.check_interface_name(value)


def _parse_value(value: object) -> str:
    if value == "share":
        raise values.expected("path", hint=SHARE)
    if value != "path":
        raise ValueError
    return "path"


Network = Annotated[
    Prefix | str,
    Scalar(
        _WHAT_NETWORK, _parse_network, {"type": "string", "examples": ["10.0.2.0/24", "lo"]}, str
    ),
]
BandwidthValue = Annotated[Literal["path"], Scalar("'path'", _parse_value, {"enum": ["path"]})]


class BgpPathBandwidth(Section, frozen=True):
    """What sessions say, and hear, of path bandwidth. ``value``: that of the whole path.

    ``demand``: of all neighbors that are told a share, None: the capacity of their links.
    """

    send: Literal["transitive", "non-transitive", "both", "none"] = _BANDWIDTH.send
    receive: Annotated[bool, Reload.BOUNCE] = _BANDWIDTH.receive
    value: BandwidthValue = "path"
    missing: Annotated[Literal["link", "ecmp"], Reload.BOUNCE] = _BANDWIDTH.missing
    demand: quantities.HostDemand = None


class BgpRedistributed(Section, frozen=True):
    """How routes of one source are announced; ``tag`` None: with any.

    ``prefixes`` empty: all of them that ``filter`` permits.
    """

    med: Annotated[int, values.whole(0, _MAX_U32)] | None = None
    tag: Annotated[int, values.whole(0, _MAX_U32)] | None = None
    prefixes: list[values.AnyPrefixText] = field(default_factory=list)
    filter: FilterName | None = None


class BgpRedistribute(Sources, frozen=True):
    """The routes of other sources that are announced to neighbors with the export word igp."""

    connected: Annotated[BgpRedistributed | None, EMPTY_IS_MEANT] = None
    static: Annotated[BgpRedistributed | None, EMPTY_IS_MEANT] = None
    ospf: Annotated[BgpRedistributed | None, EMPTY_IS_MEANT] = None
    isis: Annotated[BgpRedistributed | None, EMPTY_IS_MEANT] = None
    instead: ClassVar[Mapping[str, str]] = {
        "default": "networks: [0.0.0.0/0] announces a default route",
        "kernel": "routes that other programs set are static",
    }


class BgpGracefulRestart(Section, frozen=True):
    """Graceful restart of BGP (RFC 4724). ``enabled``: of this router, ``helper``: of neighbors.

    ``restart_time``: seconds until the session is up again, ``stale_time``: seconds from then until
    the neighbor has told all its routes again, at most.
    """

    enabled: Annotated[bool, Reload.BOUNCE] = _RESTART.enabled
    restart_time: Annotated[int, values.whole(1, 4095), Reload.BOUNCE] = _RESTART.restart_time
    helper: Annotated[bool, Reload.BOUNCE] = _RESTART.helper
    stale_time: quantities.Duration = _RESTART.stale_time

    @property
    def grace_period(self) -> int:
        """Seconds that a restart of this router takes at most."""
        return self.restart_time


class AnnouncedInterface(Section, frozen=True):
    """An interface whose networks are announced, and over which no neighbor is."""

    expects_neighbors: ClassVar[bool] = False
    silence: ClassVar[float] = 0.0


ANNOUNCED = AnnouncedInterface()


class Bgp(Section, frozen=True):
    """BGP-4. ``neighbors`` in the order of the file, by address, interface or glob.

    ``router_id`` None: that of the router. ``networks``: prefixes, and interfaces whose networks
    are announced.
    """

    as_: Annotated[AsNumber, Reload.RESTART]
    router_id: Annotated[values.RouterIdText | None, Reload.RESTART] = None
    address_families: Annotated[Families, Reload.RESTART] = ("ipv4", "ipv6")
    networks: list[Network] = field(default_factory=list)
    path_bandwidth: BgpPathBandwidth = BgpPathBandwidth()
    as_path: Literal["relax", "strict"] = "relax"
    max_paths: Annotated[int, values.whole(1, 1024)] = _ENGINE.max_paths
    preference: Annotated[int, values.whole(1, 255)] = PREFERENCE
    internal_preference: Annotated[int, values.whole(1, 255), Reload.RESTART] = INTERNAL_PREFERENCE
    redistribute: BgpRedistribute = BgpRedistribute()
    graceful_restart: BgpGracefulRestart = BgpGracefulRestart()
    graceful_shutdown: bool = False
    graceful_shutdown_on_stop: quantities.Duration = 0.0
    port: Annotated[int, values.whole(1, 65535), Reload.RESTART] = _ENGINE.port
    neighbors: Annotated[dict[NeighborKey, BgpNeighbor], Reload.BOUNCE] = field(
        default_factory=dict
    )
    instead: ClassVar[Mapping[str, str]] = ROUTER
    spf: ClassVar[SpfDelays] = SpfDelays()
    needs_router_id: ClassVar[bool] = True
    ipv4_over_ipv6: ClassVar[bool] = True
    counts_boots: ClassVar[bool] = False

    @classmethod
    def prepare(cls, data: object) -> object:
        """Refuse a section without an AS."""
        if data is None or (isinstance(data, dict) and data.get("as") is None):
            raise values.expected("the number of this AS, such as 65001", field="as")
        return data

    @property
    def drained_on_shutdown(self) -> float:
        """Seconds of the shutdown in which others keep transit traffic away."""
        return self.graceful_shutdown_on_stop

    @property
    def families(self) -> tuple[int, ...]:
        """The address families, 4 and 6, ascending."""
        return families_of(self.address_families)

    @functools.cached_property
    def by_address(self) -> Mapping[str, BgpNeighbor]:
        """The neighbors that are named by their address."""
        return {key: one for key, one in self.neighbors.items() if is_address(key)}

    @functools.cached_property
    def by_name(self) -> MostExact[BgpNeighbor]:
        """The neighbors of unnumbered links, by interface."""
        return MostExact({key: one for key, one in self.neighbors.items() if not is_address(key)})

    @functools.cached_property
    def own_prefixes(self) -> tuple[Prefix, ...]:
        """The prefixes among ``networks``."""
        return tuple([one for one in self.networks if isinstance(one, Prefix)])

    @functools.cached_property
    def own_names(self) -> MostExact[AnnouncedInterface]:
        """The interfaces among ``networks``."""
        return MostExact({one: ANNOUNCED for one in self.networks if isinstance(one, str)})

    def is_external(self, neighbor: BgpNeighbor) -> bool:
        """Whether a neighbor is in another AS."""
        found = neighbor.is_external
        return neighbor.remote_as != self.as_ if found is None else found

    def every_interface(self) -> Iterator[tuple[str, BgpNeighbor | AnnouncedInterface]]:
        """Yield each interface, by name or glob."""
        yield from ((key, one) for key, one in self.neighbors.items() if not is_address(key))
        yield from ((key, ANNOUNCED) for key in self.networks if isinstance(key, str))

    def interface(self, name: str) -> tuple[None, BgpNeighbor | AnnouncedInterface] | None:
        """Return None (no area) and what is on an interface by its name, None without BGP.

        The address of a neighbor stands for that neighbor.
        """
        found = self.by_address.get(name) or self.by_name.find(name) or self.own_names.find(name)
        return None if found is None else (None, found)

    def on(self, link: Link) -> tuple[None, BgpNeighbor | AnnouncedInterface] | None:
        """Return the same for a link, whose addresses may lead to neighbors or be announced."""
        if link.loopback:
            own = self.own_names.find(link.name)
            return None if own is None else (None, own)
        for (family, far), neighbor in self._by_number.items():
            if any(own.family == family and own.contains(far) for own in link.addresses):
                return None, neighbor
        found = self.by_name.on(link) or self.own_names.on(link)
        if found is None and any(self._announces(own) for own in link.addresses):
            found = ANNOUNCED
        return None if found is None else (None, found)

    def _announces(self, own: InterfaceAddress) -> bool:
        """Whether the network of an address is among ``networks``."""
        place = own.family, own.prefix_length
        mine = (one for one in self.own_prefixes if (one.family, one.length) == place)
        return any(one.contains(own.network) for one in mine)

    @functools.cached_property
    def _by_number(self) -> Mapping[tuple[int, int], BgpNeighbor]:
        """The neighbors of ``by_address``, by family and number."""
        found = ((ipaddress.ip_address(key), one) for key, one in self.by_address.items())
        return {(address.version, int(address)): one for address, one in found}
