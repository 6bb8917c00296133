"""A neighbor of BGP in the configuration: an entry of ``bgp: neighbors``."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from fared.config import quantities, values
from fared.config.bfd import BfdOptions
from fared.config.bgp_instead import NEIGHBOR
from fared.config.filters import FilterName
from fared.config.igp import Families
from fared.config.secrets import KeyFilePath, SecretText
from fared.config.section import Reload, Section
from fared.config.shapes import Note, Scalar
from fared.protocols.bgp.settings import EXTERNAL, INTERNAL, BgpNeighborSettings

_MAX_KEY = 80
"""TCP_MD5SIG_MAXKEYLEN of Linux."""
_MAX_AS = 0xFFFF_FFFF
_RESERVED = {
    23456: "23456 stands for ASes of four octets (RFC 6793)",
    65535: "65535 is reserved (RFC 7300)",
    _MAX_AS: f"{_MAX_AS} is reserved (RFC 7300)",
}
_DOTS = 3
_LEAST_HOLD, _MOST_HOLD = 3, 65535
_WHAT_AS = f"an AS number 1..{_MAX_AS - 1}"
_WHAT_REMOTE = f"external, internal, or {_WHAT_AS}"
_WHAT_HOLD = f"0, or whole seconds {_LEAST_HOLD}..{_MOST_HOLD}"
_WHAT_NEIGHBOR = (
    "the address of a neighbor, the name of an interface to one, or a glob such as swp*"
)
_WHAT_ADDRESS = "an address such as 10.9.1.2 or 2001:db8::2"
_MOST_PREFIXES = 10_000_000
_NEIGHBOR = BgpNeighborSettings()
"""The defaults of the engine."""


def parse_as(value: object) -> int:
    """Parse the number of an AS. Raises ValueError."""
    dotted = isinstance(value, float) or (isinstance(value, str) and "." in value)
    if dotted:
        raise values.expected(_WHAT_AS, hint="of 64086.59904 write 64086 * 65536 + 59904")
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MAX_AS:
        raise ValueError
    if value in _RESERVED:
        raise values.expected(_WHAT_AS, hint=_RESERVED[value])
    return value


def _parse_remote_as(value: object) -> int | str:
    return value if value in (EXTERNAL, INTERNAL) and isinstance(value, str) else parse_as(value)


def is_address(key: str) -> bool:
    """Whether the key of a neighbor is an address; else it names an interface, or several."""
    return ":" in key or (key.count(".") == _DOTS and key.replace(".", "").isdigit())


def _parse_address(value: object) -> str:
    address = ipaddress.ip_address(value if isinstance(value, str) else "")
    if address.is_link_local:
        hint = "for a link-local address, the key of the neighbor is its interface"
        raise values.expected(_WHAT_ADDRESS, hint=hint)
    if address.is_multicast or address.is_unspecified or address.is_loopback:
        raise ValueError
    return str(address)


def parse_neighbor(value: object) -> str:
    """Return the key of a neighbor, an address in its usual form. Raises ValueError."""
    if isinstance(value, str) and is_address(value):
        return _parse_address(value)
    return values.check_interface_name(value)


def _parse_hold_time(value: str | float) -> int:
    # RFC 4271 §4.2: 0, or at least three seconds
    return 0 if value == 0 else quantities.parse_whole_seconds(value)


def _check_hold_time(value: int) -> None:
    if 0 < value < _LEAST_HOLD:
        raise ValueError


def _parse_limit(value: object) -> int | None:
    if value == "none":
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_PREFIXES:
        raise ValueError
    return value


def _words_given(value: object) -> object:
    """Return a list of words; a single one is accepted as well, and ``none``."""
    if value == "none":
        return []
    return [value] if isinstance(value, str) else value


def _bfd_given(value: object) -> object:
    """``bfd: true`` is short for ``bfd: {enabled: true}``."""
    return {"enabled": value} if isinstance(value, bool) else value


AsNumber = Annotated[
    int, Scalar(_WHAT_AS, parse_as, {"type": "integer", "minimum": 1, "maximum": _MAX_AS - 1})
]
RemoteAs = Annotated[
    int | Literal["external", "internal"],
    Scalar(
        _WHAT_REMOTE,
        _parse_remote_as,
        {"type": ["string", "integer"], "examples": [EXTERNAL, INTERNAL, 65100]},
    ),
]
Address = Annotated[
    str, Scalar(_WHAT_ADDRESS, _parse_address, {"type": "string", "examples": ["10.9.1.2"]})
]
NeighborKey = Annotated[str, Scalar(_WHAT_NEIGHBOR, parse_neighbor, {"type": "string"})]
HoldTime = Annotated[
    int,
    values.written(_WHAT_HOLD, _parse_hold_time, {"type": ["string", "integer"]}),
    Note(after=_check_hold_time, words=_WHAT_HOLD),
]
PrefixLimit = Annotated[
    int | None,
    Scalar(
        f"none, or an integer 1..{_MOST_PREFIXES}",
        _parse_limit,
        {"type": ["string", "integer"], "examples": ["none", 100_000]},
        lambda value: "none" if value is None else value,
    ),
]
Words = Note(before=_words_given)
Import = Annotated[tuple[Literal["all"], ...], Words]
Export = Annotated[tuple[Literal["own", "igp", "bgp", "all"], ...], Words]


class BgpAuthentication(Section, frozen=True):
    """TCP MD5 (RFC 2385): ``key`` or ``key-file``."""

    unwritten: ClassVar[tuple[object, ...]] = (None,)
    key: SecretText | None = None
    key_file: KeyFilePath | None = None
    instead: ClassVar[Mapping[str, str]] = {
        "algorithm": "TCP MD5 is the only one: leave it out",
        "key-id": "TCP MD5 has none: leave it out",
        "keys": "TCP MD5 has one key at a time: change it at both ends",
    }

    def check(self) -> None:
        """Refuse a section without a key, or with one that is too long."""
        if (self.key is None) == (self.key_file is None):
            raise values.expected("a key, or a key-file", field="key")
        if len(self.secret()) > _MAX_KEY:
            where = "key-file" if self.key is None else "key"
            raise values.expected(f"a key of at most {_MAX_KEY} bytes", field=where)

    def secret(self) -> bytes:
        """Return the key itself."""
        holder = self.key or self.key_file
        return b"" if holder is None else holder.content


class NeighborPathBandwidth(Section, frozen=True):
    """``path-bandwidth`` of a neighbor. None: as the router's."""

    send: Literal["transitive", "non-transitive", "both", "none"] | None = None
    receive: Annotated[bool | None, Reload.BOUNCE] = None
    value: Literal["path", "share"] | None = None
    missing: Annotated[Literal["link", "ecmp"] | None, Reload.BOUNCE] = None


class NeighborFilter(Section, frozen=True):
    """The filters of a neighbor, by name: of what it told, and of what it is told."""

    import_: FilterName | None = None
    export: FilterName | None = None


class BgpNeighbor(Section, frozen=True):
    """One neighbor, or one on each link that a glob matches.

    ``import_`` and ``export`` None: everything with an internal neighbor, nothing with an external
    one (RFC 8212). ``keepalive`` None: a third of the hold time. ``address_families`` None: the
    router's.
    """

    remote_as: Annotated[RemoteAs, Reload.BOUNCE] = EXTERNAL
    description: str = _NEIGHBOR.description
    shutdown: Annotated[bool, Reload.BOUNCE] = False
    import_: Import | None = None
    export: Export | None = None
    filter: NeighborFilter = NeighborFilter()
    maximum_prefixes: PrefixLimit = _NEIGHBOR.maximum_prefixes
    restart_after: quantities.Duration = _NEIGHBOR.restart_after
    path_bandwidth: NeighborPathBandwidth = NeighborPathBandwidth()
    min_path_bandwidth: quantities.LeastBandwidth = _NEIGHBOR.min_path_bandwidth
    address_families: Annotated[Families | None, Reload.BOUNCE] = None
    hold_time: Annotated[HoldTime, Reload.BOUNCE] = _NEIGHBOR.hold_time
    keepalive: Annotated[quantities.Seconds | None, Reload.BOUNCE] = None
    connect_retry: quantities.Seconds = _NEIGHBOR.connect_retry
    passive: bool = _NEIGHBOR.passive
    local_address: Annotated[Address | None, Reload.BOUNCE] = None
    port: Annotated[int, values.whole(1, 65535), Reload.BOUNCE] = _NEIGHBOR.port
    enforce_first_as: Annotated[bool, Reload.BOUNCE] = _NEIGHBOR.enforce_first_as
    ttl_security: Annotated[bool, Reload.BOUNCE] = _NEIGHBOR.ttl_security
    authentication: BgpAuthentication | None = None
    bfd: Annotated[BfdOptions, Note(before=_bfd_given)] = BfdOptions()
    instead: ClassVar[Mapping[str, str]] = NEIGHBOR
    expects_neighbors: ClassVar[bool] = True

    def check(self) -> None:
        """Refuse an interval between keepalives in which the session ends."""
        if self.keepalive is not None and self.hold_time and self.keepalive >= self.hold_time:
            raise values.expected(f"less than hold-time ({self.hold_time})", field="keepalive")

    @property
    def silence(self) -> float:
        """The hold time: seconds without a message after which the session ends."""
        return float(self.hold_time)

    @property
    def is_external(self) -> bool | None:
        """Whether it is in another AS; None: that depends on ours."""
        return None if isinstance(self.remote_as, int) else self.remote_as == EXTERNAL
