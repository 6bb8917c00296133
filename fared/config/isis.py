"""The ``isis`` section: IS-IS on this router, with the leaf names of ietf-isis (RFC 9130)."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import field

from fared.config import quantities, values
from fared.config.authentication import IsisAuthentication
from fared.config.bfd import BfdOptions
from fared.config.filters import FilterName, PropagationFilter
from fared.config.globs import MostExact
from fared.config.igp import Families, FloodingOptions, Sources, SpfDelays, families_of
from fared.config.section import Reload, Section
from fared.config.shapes import EMPTY_IS_MEANT, Note, Scalar
from fared.core.ids import SystemId, format_system_id
from fared.core.links import Link
from fared.paths.weights.defaults import MAX_PATHS
from fared.protocols.isis.ids import PATH_CAPACITY
from fared.protocols.isis.settings import (
    MAX_PATH_METRIC,
    CircuitSettings,
    FastFloodingSettings,
    IsisSettings,
)
from fared.router.protocols import ISIS, PROTOCOLS

LevelName = Literal["level-1", "level-2", "level-1-2"]

_HEX = re.compile(r"^(?:[0-9a-fA-F]{2})(?:\.?[0-9a-fA-F]{2})*$")
_SYSTEM_BYTES = 6
_MAX_AREA_BYTES = 13
_MAX_NETS = 3
_MAX_METRIC = 0xFFFFFE
_WHAT_NET = "a network entity title such as 49.0001.0102.5500.0001.00"
_MIN_LSP = 128
_MAX_LSP = 9190
_ENGINE, _CIRCUIT = IsisSettings(SystemId(0), ()), CircuitSettings()
_FAST = FastFloodingSettings()
"""The defaults of the engine."""


class Net(msgspec.Struct, frozen=True):
    """A network entity title (ISO 10589 §7.1): area address and system id; the selector is 0."""

    area: bytes
    system_id: SystemId

    def __str__(self) -> str:
        digits = self.area.hex()
        first, rest = digits[:2], digits[2:]
        groups = [rest[at : at + 4] for at in range(0, len(rest), 4)]
        return ".".join([first, *groups, format_system_id(self.system_id), "00"])


def parse_net(value: object) -> Net:
    """Parse ``49.0001.0102.5500.0001.00``. Raises ValueError."""
    text = str(value)
    if not _HEX.match(text):
        raise ValueError
    data = bytes.fromhex(text.replace(".", ""))
    area = data[: -_SYSTEM_BYTES - 1]
    if not 1 <= len(area) <= _MAX_AREA_BYTES or data[-1] != 0:
        raise ValueError
    system_id = int.from_bytes(data[-_SYSTEM_BYTES - 1 : -1], "big")
    if not system_id:
        raise ValueError
    return Net(area, SystemId(system_id))


def _parse_net(value: object) -> Net:
    if not isinstance(value, str):
        raise values.expected(_WHAT_NET, hint="write it as text")
    return parse_net(value)


def _as_list(value: object) -> object:
    """Return a list; a single title is accepted as well."""
    return value if isinstance(value, list | tuple) else [value]


def _check_nets(nets: tuple[Net, ...]) -> None:
    if not 1 <= len(nets) <= _MAX_NETS:
        raise values.expected(f"one to {_MAX_NETS} titles")
    if len({net.system_id for net in nets}) > 1:
        raise values.expected("titles with the same system id")
    if len({net.area for net in nets}) < len(nets):
        raise values.expected("titles with different area addresses")


def _show_nets(nets: tuple[Net, ...]) -> object:
    return [str(net) for net in nets] if len(nets) > 1 else str(nets[0])


_NET_SCHEMA = {"type": "string", "examples": ["49.0001.0102.5500.0001.00"]}
NetText = Annotated[Net, Scalar(_WHAT_NET, _parse_net, _NET_SCHEMA, str)]


class IsisInterface(Section, frozen=True):
    """IS-IS on one interface, or on all that a glob matches.

    ``level`` None: the router's. ``hello-multiplier`` hellos missed end an adjacency.
    ``prefix_suppression`` None: as the router's ``advertise-passive-only`` says.
    """

    network_type: Annotated[Literal["point-to-point", "broadcast"], Reload.BOUNCE] = (
        "point-to-point"
    )
    level: Annotated[LevelName | None, Reload.BOUNCE] = None
    metric: Annotated[int, values.whole(1, _MAX_METRIC)] = _CIRCUIT.metric
    priority: Annotated[int, values.whole(0, 127)] = _CIRCUIT.priority
    hello_interval: quantities.Seconds = 1.0
    hello_multiplier: Annotated[int, values.whole(2, 100)] = 4
    hello_padding: bool = _CIRCUIT.hello_padding
    csnp_interval: quantities.WholeSeconds = int(_CIRCUIT.csnp_interval)
    lsp_retransmit_interval: quantities.Seconds = _CIRCUIT.lsp_retransmit_interval
    passive: Annotated[bool, Reload.BOUNCE] = False
    prefix_suppression: bool | None = None
    authentication: IsisAuthentication | None = None
    bfd: BfdOptions = BfdOptions()

    @property
    def expects_neighbors(self) -> bool:
        """Whether other routers are looked for on it."""
        return not self.passive

    @property
    def silence(self) -> float:
        """The holding time: seconds without a hello after which an adjacency ends."""
        return self.hello_interval * self.hello_multiplier

    def check(self) -> None:
        """Refuse a holding time that does not fit into a hello."""
        if self.hello_interval * self.hello_multiplier > 0xFFFF:
            raise values.expected(
                "a smaller number: the holding time has 16 bits", field="hello-multiplier"
            )


class FastFlooding(Section, frozen=True):
    """How fast neighbors may send LSPs on a point-to-point link (RFC 9681).

    ``receive-window``: LSPs not yet acknowledged; ``burst-size``: LSPs without a gap;
    ``lsps-per-second``: after a burst.
    """

    enabled: bool = _FAST.enabled
    receive_window: Annotated[int, values.whole(1, 0xFFFF)] = _FAST.receive_window
    burst_size: Annotated[int, values.whole(1, 0xFFFF)] = _FAST.burst_size
    lsps_per_second: Annotated[int, values.whole(1, 1_000_000)] = _FAST.rate


class IsisLevel(Section, frozen=True):
    """Settings of one level as a whole: its authentication."""

    authentication: IsisAuthentication | None = None


class LevelPropagation(Section, frozen=True):
    """Leaking by a level-1-2 router (RFC 5302). ``level2-to-level1``: with the down bit."""

    level1_to_level2: bool = _ENGINE.level1_to_level2
    level2_to_level1: bool = False
    filter: PropagationFilter = PropagationFilter()


class _IsisSource(Section, frozen=True):
    """``level`` None: level 2 if the router takes part in it, else level 1."""

    level: LevelName | None = None
    metric: Annotated[int, values.whole(0, MAX_PATH_METRIC)] = 0


class _IsisPrefixes(_IsisSource, frozen=True):
    """``prefixes`` empty: all of them that ``filter`` permits."""

    prefixes: list[values.AnyPrefixText] = field(default_factory=list)
    filter: FilterName | None = None


class IsisRedistributed(_IsisPrefixes, frozen=True):
    """How IS-IS advertises routes of the kernel; ``tag`` 0: none."""

    tag: values.RouteTag = 0


class IsisRedistributedProtocol(_IsisPrefixes, frozen=True):
    """How IS-IS advertises the routes of another protocol; ``tag`` None: that of their origin."""

    tag: values.RouteTag | None = None


class IsisRedistributedDefault(_IsisSource, frozen=True):
    """Default routes of the routed families; ``always``: also without static ones."""

    tag: values.RouteTag = 0
    always: bool = False


class IsisRedistribute(Sources, frozen=True):
    """The routes of other sources that IS-IS advertises."""

    connected: Annotated[IsisRedistributed | None, EMPTY_IS_MEANT] = None
    static: Annotated[IsisRedistributed | None, EMPTY_IS_MEANT] = None
    bgp: Annotated[IsisRedistributedProtocol | None, EMPTY_IS_MEANT] = None
    ospf: Annotated[IsisRedistributedProtocol | None, EMPTY_IS_MEANT] = None
    default: Annotated[IsisRedistributedDefault | None, EMPTY_IS_MEANT] = None


class IsisGracefulRestart(Section, frozen=True):
    """Graceful restart of IS-IS (RFC 8706). ``enabled``: of this router, ``helper``: of neighbors.

    ``grace_period``: seconds that a restart of this router takes at most. ``suppress_adjacency``:
    neighbors are not to advertise this router, when it starts, before it has their databases.
    """

    enabled: bool = False
    grace_period: quantities.WholeSeconds = int(_ENGINE.restart_period)
    helper: bool = False
    strict_lsp_checking: bool = _ENGINE.strict_lsp_checking
    suppress_adjacency: bool = False


class Isis(Section, frozen=True):
    """IS-IS. ``net``: one title, or several that differ in the area address.

    ``max_lsps``: LSPs in each level.
    """

    net: Annotated[tuple[NetText, ...], Note(_as_list, _check_nets, _show_nets), Reload.RESTART]
    level: Annotated[LevelName, Reload.RESTART] = "level-2"
    level_1: IsisLevel = IsisLevel()
    level_2: IsisLevel = IsisLevel()
    address_families: Annotated[Families, Reload.RESTART] = ("ipv4", "ipv6")
    multi_topology: Annotated[bool, Reload.RESTART] = False
    inter_level_propagation_policies: LevelPropagation = LevelPropagation()
    redistribute: IsisRedistribute = IsisRedistribute()
    advertise_passive_only: bool = False
    attached: bool = _ENGINE.attached
    overload: bool = False
    overload_on_startup: quantities.Duration = 0.0
    overload_on_shutdown: quantities.Duration = 0.0
    lsp_mtu: Annotated[int, values.whole(_MIN_LSP, _MAX_LSP)] = _ENGINE.lsp_mtu
    lsp_lifetime: quantities.WholeSeconds = _ENGINE.lsp_lifetime
    lsp_refresh: quantities.WholeSeconds = _ENGINE.lsp_refresh_interval
    preference: Annotated[int, values.whole(1, 255)] = PROTOCOLS[ISIS].preference
    max_paths: Annotated[int, values.whole(1, 1024)] = MAX_PATHS
    max_lsps: values.Limit = _ENGINE.limit.most
    max_lsps_per_system: Annotated[int, values.whole(100, 0x10000)] = _ENGINE.limit.of_originator
    max_prefixes: values.Limit = _ENGINE.prefix_limit.most
    max_prefixes_per_system: values.Limit = _ENGINE.prefix_limit.of_originator
    path_capacity_sub_tlv: Annotated[int, values.whole(0, 255), Reload.RESTART] = PATH_CAPACITY
    flooding: FloodingOptions = FloodingOptions()
    fast_flooding: FastFlooding = FastFlooding()
    graceful_restart: IsisGracefulRestart = IsisGracefulRestart()
    spf: SpfDelays = SpfDelays()
    interfaces: Annotated[dict[values.InterfaceGlob, IsisInterface], Reload.BOUNCE] = field(
        default_factory=dict
    )
    needs_router_id: ClassVar[bool] = False
    ipv4_over_ipv6: ClassVar[bool] = True
    counts_boots: ClassVar[bool] = False

    @classmethod
    def prepare(cls, data: object) -> object:
        """Refuse a section without a title."""
        if data is None or (isinstance(data, dict) and data.get("net") is None):
            raise values.expected(_WHAT_NET, field="net")
        return data

    def check(self) -> None:
        """Refuse contradictory settings."""
        if self.lsp_refresh >= self.lsp_lifetime:
            raise values.expected("less than lsp-lifetime", field="lsp-refresh")
        if self.multi_topology and set(self.address_families) != {"ipv4", "ipv6"}:
            raise values.expected("false unless both families are routed", field="multi-topology")
        levels = {getattr(source, "level", None) for source in self.redistribute.named.values()}
        if self.level != "level-1-2" and levels - {None, self.level}:
            raise values.expected(f"no level but the router's, {self.level}", field="redistribute")

    @property
    def drained_on_shutdown(self) -> float:
        """Seconds of the shutdown in which others keep transit traffic away."""
        return self.overload_on_shutdown

    @functools.cached_property
    def by_name(self) -> MostExact[IsisInterface]:
        """Settings of interfaces, by name."""
        return MostExact(self.interfaces)

    def every_interface(self) -> Iterator[tuple[str, IsisInterface]]:
        """Yield each interface, by name or glob."""
        yield from self.interfaces.items()

    def interface(self, name: str) -> tuple[None, IsisInterface] | None:
        """Return None (no area) and settings of an interface; None where IS-IS does not run."""
        found = self.by_name.find(name)
        return None if found is None else (None, found)

    def on(self, link: Link) -> tuple[None, IsisInterface] | None:
        """Return the same for a link."""
        found = self.by_name.on(link)
        return None if found is None else (None, found)

    @property
    def system_id(self) -> SystemId:
        """The system id that all titles share."""
        return self.net[0].system_id

    @property
    def families(self) -> tuple[int, ...]:
        """The address families, 4 and 6, ascending."""
        return families_of(self.address_families)

    def suppresses(self, interface: IsisInterface) -> bool:
        """Whether the prefixes of an interface are not advertised."""
        own = interface.prefix_suppression
        return self.advertise_passive_only and not interface.passive if own is None else own

    def levels_of(self, interface: IsisInterface) -> str:
        """Return the levels of an interface: its own within the router's."""
        return interface.level or self.level


def keys_of_levels(section: Isis) -> dict[int, Any]:
    """Return the authentication of each level that has one."""
    found = {1: section.level_1.authentication, 2: section.level_2.authentication}
    return {level: keys for level, keys in found.items() if keys is not None}
