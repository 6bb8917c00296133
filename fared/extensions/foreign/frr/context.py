"""What the tables of FRR's statements fill in, before settings are made of it.

Lines of a file may stand in any order: an area has its authentication behind the interfaces in it.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface
from typing import Any, NamedTuple

import msgspec

from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.frr.lines import FrrStatement
from fared.extensions.foreign.rules import Action


class Given(NamedTuple):
    """A value and its line."""

    value: Any
    statement: FrrStatement


Settings = dict[tuple[str, ...], Given]
"""By the path below the section that they are for."""


class Key(NamedTuple):
    """A key of authentication: its settings, and its line."""

    leaves: dict[str, Any]
    statement: FrrStatement


class OspfPort(msgspec.Struct):
    """OSPF on an interface. ``mode``: of the authentication; ``passive`` None: as the router."""

    settings: Settings = msgspec.field(default_factory=dict)
    area: Given | None = None
    passive: Given | None = None
    mode: Given | None = None
    password: Key | None = None
    digests: list[Key] = msgspec.field(default_factory=list)


class IsisPort(msgspec.Struct):
    """IS-IS on an interface: the families with their lines, and settings."""

    settings: Settings = msgspec.field(default_factory=dict)
    families: dict[str, Given] = msgspec.field(default_factory=dict)
    keys: list[Key] = msgspec.field(default_factory=list)


class FrrPort(msgspec.Struct):
    """An interface of the file."""

    name: str
    statement: FrrStatement
    addresses: list[tuple[IPv4Interface | IPv6Interface, FrrStatement]] = msgspec.field(
        default_factory=list
    )
    description: str = ""
    bandwidth: Given | None = None
    rate: Given | None = None
    """Bits/s: what costs are computed from, and what is advertised if it is another value."""
    delay: Given | None = None
    ospf: OspfPort = msgspec.field(default_factory=OspfPort)
    isis: IsisPort = msgspec.field(default_factory=IsisPort)


class NetworkArea(NamedTuple):
    """A ``network PREFIX area AREA`` of OSPF."""

    prefix: IPv4Network
    area: str
    statement: FrrStatement


class AskedSource(NamedTuple):
    """A source that is to be redistributed; ``words`` are its options."""

    source: str
    words: list[str]
    statement: FrrStatement


class FrrOspf(msgspec.Struct):
    """``router ospf``."""

    statement: FrrStatement
    settings: Settings = msgspec.field(default_factory=dict)
    networks: list[NetworkArea] = msgspec.field(default_factory=list)
    passive_default: Given | None = None
    passive: dict[str, Given] = msgspec.field(default_factory=dict)
    area_modes: dict[str, Given] = msgspec.field(default_factory=dict)
    area_filters: dict[tuple[str, str], Given] = msgspec.field(default_factory=dict)
    """Names of prefix lists by area and direction, ``in`` or ``out``."""
    redistributed: list[AskedSource] = msgspec.field(default_factory=list)
    distribute_lists: list[AskedSource] = msgspec.field(default_factory=list)
    """The sources with their access lists."""
    default_metric: int | None = None
    reference: float = 100e9
    """Bits/s at which an interface costs 1."""


class FrrIsis(msgspec.Struct):
    """``router isis``, or what interfaces say of it."""

    statement: FrrStatement
    settings: Settings = msgspec.field(default_factory=dict)
    nets: list[Given] = msgspec.field(default_factory=list)
    level: str = "level-1-2"
    level_keys: dict[int, Key] = msgspec.field(default_factory=dict)
    redistributed: list[AskedSource] = msgspec.field(default_factory=list)


class FrrPeerLists(msgspec.Struct):
    """A neighbor in one family: names of lists by ``import`` and ``export``."""

    prefix_lists: dict[str, Given] = msgspec.field(default_factory=dict)
    route_maps: dict[str, Given] = msgspec.field(default_factory=dict)
    active: Given | None = None


class FrrPeer(msgspec.Struct):
    """A neighbor of BGP, or a peer group. ``lists`` by family."""

    statement: FrrStatement
    is_group: bool = False
    group: Given | None = None
    settings: Settings = msgspec.field(default_factory=dict)
    lists: dict[str, FrrPeerLists] = msgspec.field(default_factory=dict)


class FrrBgp(msgspec.Struct):
    """``router bgp``. ``datacenter``: the defaults of FRR's profile of that name count.

    ``blocks``: the address families, in the order of the file.
    """

    statement: FrrStatement
    number: int
    datacenter: bool
    settings: Settings = msgspec.field(default_factory=dict)
    timers: dict[str, Given] = msgspec.field(default_factory=dict)
    requires_policy: Given | None = None
    ipv4_active: Given | None = None
    networks: list[Given] = msgspec.field(default_factory=list)
    redistributed: list[AskedSource] = msgspec.field(default_factory=list)
    peers: dict[str, FrrPeer] = msgspec.field(default_factory=dict)
    blocks: list[tuple[str, FrrStatement]] = msgspec.field(default_factory=list)


class FrrFile(msgspec.Struct):
    """A whole file. Policies are its lists, route maps and key chains, by name."""

    draft: Draft
    ports: dict[str, FrrPort] = msgspec.field(default_factory=dict)
    ospf: FrrOspf | None = None
    isis: FrrIsis | None = None
    bgp: FrrBgp | None = None
    datacenter: bool = False
    """Whether its defaults are those of a data center."""
    router_id: Given | None = None
    prefix_lists: dict[str, list[FrrStatement]] = msgspec.field(default_factory=dict)
    access_lists: dict[str, list[FrrStatement]] = msgspec.field(default_factory=dict)
    route_maps: dict[str, list[FrrStatement]] = msgspec.field(default_factory=dict)
    key_chains: dict[str, list[Key]] = msgspec.field(default_factory=dict)


def setting(*path: str, read: Callable[[str], object] = str) -> Action:
    """Return an action that keeps a word as a setting, for a context with ``settings``."""

    def keep(context: Any, statement: FrrStatement, word: str) -> None:  # noqa: ANN401
        context.settings[path] = Given(read(word), statement)

    return keep


def switch(*path: str, value: object = True) -> Action:
    """Return an action that keeps a fixed value as a setting."""

    def keep(context: Any, statement: FrrStatement, *_words: str) -> None:  # noqa: ANN401
        context.settings[path] = Given(value, statement)

    return keep
