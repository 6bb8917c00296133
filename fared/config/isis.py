"""The ``isis`` section: IS-IS on this router, with the leaf names of ietf-isis (RFC 9130)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from fared.config import values
from fared.config.authentication import IsisAuthentication
from fared.config.flooding import FloodingOptions
from fared.config.redistribute import IsisRedistribute, LevelName
from fared.config.section import Section
from fared.config.spf import SpfBackoff
from fared.core.ids import SystemId, format_system_id
from fared.isis.settings import DEFAULT_LSP_MTU, PATH_CAPACITY

_HEX = re.compile(r"^(?:[0-9a-fA-F]{2})(?:\.?[0-9a-fA-F]{2})*$")
_SYSTEM_BYTES = 6
_MAX_AREA_BYTES = 13
_MAX_NETS = 3
_MAX_METRIC = 0xFFFFFE
_WHAT_NET = "a network entity title such as 49.0001.0102.5500.0001.00"
_MIN_LSP = 128
_MAX_LSP = 9190


class Net(NamedTuple):
    """A network entity title (ISO 10589 §7.1): area address and system id; the selector is 0."""

    area: bytes
    system_id: SystemId

    def __str__(self) -> str:
        digits = self.area.hex()
        first, rest = digits[:2], digits[2:]
        groups = [rest[at : at + 4] for at in range(0, len(rest), 4)]
        return ".".join([first, *groups, format_system_id(self.system_id), "00"])


def parse_net(value: object) -> Net:
    """Read ``49.0001.0102.5500.0001.00``. Raises ValueError."""
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
    try:
        return parse_net(value)
    except ValueError:
        raise values.expected(_WHAT_NET) from None


def _as_tuple(value: object) -> object:
    """One title may stand alone."""
    if isinstance(value, list):
        return tuple(value)
    return value if isinstance(value, tuple) else (value,)


def _list_is_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


NetText = Annotated[
    Net,
    BeforeValidator(_parse_net),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "examples": ["49.0001.0102.5500.0001.00"]}),
]
EmptyIsMapping = BeforeValidator(lambda value: {} if value is None else value)


class IsisInterface(Section):
    """IS-IS on one interface, or on all that a glob matches.

    ``level`` None: the router's. ``hello-multiplier`` hellos missed end an adjacency.
    """

    network_type: Literal["point-to-point", "broadcast"] = "point-to-point"
    level: LevelName | None = None
    metric: Annotated[int, values.Whole(1, _MAX_METRIC)] = 10
    priority: Annotated[int, values.Whole(0, 127)] = 64
    hello_interval: values.Seconds = 1.0
    hello_multiplier: Annotated[int, values.Whole(2, 100)] = 4
    hello_padding: bool = True
    csnp_interval: values.WholeSeconds = 10
    lsp_retransmit_interval: values.Seconds = 5.0
    passive: bool = False
    authentication: IsisAuthentication | None = None

    @model_validator(mode="after")
    def _holding_time_fits(self) -> IsisInterface:
        if self.hello_interval * self.hello_multiplier > 0xFFFF:
            raise values.expected(
                "a smaller number: the holding time has 16 bits", field="hello-multiplier"
            )
        return self


class IsisLevel(Section):
    """What concerns one level as a whole: who may write into its database."""

    authentication: IsisAuthentication | None = None


class LevelPropagation(Section):
    """What a level-1-2 router passes on (RFC 5302). ``level2-to-level1``: with the down bit."""

    level1_to_level2: bool = True
    level2_to_level1: bool = False


class Isis(Section):
    """IS-IS. ``net``: one title, or several that differ in the area address."""

    net: Annotated[
        tuple[NetText, ...],
        BeforeValidator(_as_tuple),
        PlainSerializer(lambda nets: [str(net) for net in nets] if len(nets) > 1 else str(nets[0])),
    ]
    level: LevelName = "level-2"
    level_1: IsisLevel = IsisLevel()
    level_2: IsisLevel = IsisLevel()
    address_families: Annotated[
        tuple[Literal["ipv4", "ipv6"], ...], BeforeValidator(_list_is_tuple)
    ] = ("ipv4", "ipv6")
    multi_topology: bool = False
    inter_level_propagation_policies: LevelPropagation = LevelPropagation()
    redistribute: IsisRedistribute = IsisRedistribute()
    attached: bool = True
    overload: bool = False
    overload_on_startup: values.Duration = 0.0
    lsp_mtu: Annotated[int, values.Whole(_MIN_LSP, _MAX_LSP)] = DEFAULT_LSP_MTU
    lsp_lifetime: values.WholeSeconds = 1200
    lsp_refresh: values.WholeSeconds = 900
    preference: Annotated[int, values.Whole(1, 255)] = 115
    max_paths: Annotated[int, values.Whole(1, 1024)] = 64
    path_capacity_sub_tlv: Annotated[int, values.Whole(0, 255)] = PATH_CAPACITY
    flooding: FloodingOptions = FloodingOptions()
    spf: SpfBackoff = SpfBackoff()
    interfaces: Annotated[dict[values.InterfaceGlob, IsisInterface], EmptyIsMapping] = Field(
        default={}
    )

    @model_validator(mode="before")
    @classmethod
    def _needs_a_net(cls, data: object) -> object:
        if data is None or (isinstance(data, dict) and data.get("net") is None):
            raise values.expected(_WHAT_NET, field="net")
        return data

    @field_validator("net")
    @classmethod
    def _one_system(cls, nets: tuple[Net, ...]) -> tuple[Net, ...]:
        if not 1 <= len(nets) <= _MAX_NETS:
            raise values.expected(f"one to {_MAX_NETS} titles")
        if len({net.system_id for net in nets}) > 1:
            raise values.expected("titles with the same system id")
        if len({net.area for net in nets}) < len(nets):
            raise values.expected("titles with different area addresses")
        return nets

    @field_validator("address_families")
    @classmethod
    def _some_family(cls, families: tuple[str, ...]) -> tuple[str, ...]:
        if not families or len(set(families)) < len(families):
            raise values.expected("ipv4, ipv6, or both")
        return families

    @model_validator(mode="after")
    def _consistent(self) -> Isis:
        if self.lsp_refresh >= self.lsp_lifetime:
            raise values.expected("less than lsp-lifetime", field="lsp-refresh")
        if self.multi_topology and set(self.address_families) != {"ipv4", "ipv6"}:
            raise values.expected("false unless both families are routed", field="multi-topology")
        levels = {getattr(source, "level", None) for source in self.redistribute.named.values()}
        if self.level != "level-1-2" and levels - {None, self.level}:
            raise values.expected(f"no level but the router's, {self.level}", field="redistribute")
        return self

    @property
    def system_id(self) -> SystemId:
        """The system id that all titles share."""
        return self.net[0].system_id

    @property
    def families(self) -> tuple[int, ...]:
        """4 and 6, ascending."""
        return tuple(sorted(int(name[3]) for name in self.address_families))

    def levels_of(self, interface: IsisInterface) -> str:
        """The name of the levels of an interface: its own within the router's."""
        return interface.level or self.level


def keys_of_levels(section: Isis) -> dict[int, Any]:
    """The authentication of each level that has one."""
    found = {1: section.level_1.authentication, 2: section.level_2.authentication}
    return {level: keys for level, keys in found.items() if keys is not None}
