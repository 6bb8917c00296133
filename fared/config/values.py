"""Scalar values of the configuration file: their text form, and their value in the daemon.

Each type reads the text form (``0.0.0.0``, ``main``) and writes it back, so that a configuration
printed by the daemon is a valid configuration. The description of the valid form is part of the
error, which the loader shows with the line. ``quantities`` has those with a unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import msgspec

from fared.config.globs import is_glob
from fared.config.reading import Refused
from fared.config.shapes import Scalar, unchanged
from fared.core.ids import FAMILY_IPV4, Prefix, dotted, parse_area, parse_dotted, parse_prefix
from fared.paths.fib.settings import MAIN_TABLE

_HTTP = re.compile(r"^(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[\w.-]+)):(?P<port>\d{1,5})$")
_TABLES = {"main": MAIN_TABLE, "default": 253}
_LOCAL_TABLE = 255
_IFNAME_MAX = 15  # IFNAMSIZ without its NUL
_MAX_U32 = 0xFFFFFFFF
TX_ONLY: Final = "tx-only"
_HOSTNAME_MAX = 255  # RFC 5642 §3, RFC 5301 §3
LONGEST_GLOB = 64


class HttpAddress(msgspec.Struct, frozen=True):
    """The address and port of the HTTP server."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def expected(what: str, hint: str = "", field: str = "") -> Refused:
    """Return the error of a value that is not ``what``; ``hint`` and ``field`` as in Refused."""
    return Refused(what, hint, field)


def is_number(value: object) -> bool:
    """Whether YAML read a number; ``true`` is not one."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(low: int, high: int) -> Scalar:
    """Return the shape of an integer within ``low..high``."""

    def parse(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError
        return value

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Scalar(f"an integer {low}..{high}", parse, schema)


def _parse_router_id(value: str | float) -> int:
    number = parse_dotted(str(value))
    if number == 0:
        raise ValueError
    return number


def _parse_table(value: str | float) -> int:
    table = _TABLES.get(value) if isinstance(value, str) else value
    if not isinstance(table, int) or not 1 <= table <= _MAX_U32 or table == _LOCAL_TABLE:
        raise ValueError
    return table


def _show_table(value: int) -> str | int:
    return next((name for name, number in _TABLES.items() if number == value), value)


def _parse_http(value: object) -> HttpAddress | None:
    # YAML 1.1 reads a bare `off` as false.
    if value is False or value == "off":
        return None
    match = _HTTP.match(value) if isinstance(value, str) else None
    if match is None or not 0 < int(match["port"]) <= 65535:
        raise ValueError
    return HttpAddress(match["v6"] or match["host"], int(match["port"]))


def _show_http(value: HttpAddress | None) -> str:
    return "off" if value is None else str(value)


def _parse_ttl_security(value: object) -> bool | str:
    if isinstance(value, bool):
        return value
    if value == TX_ONLY:
        return TX_ONLY
    raise ValueError


def _parse_any_prefix_text(value: object) -> Prefix:
    prefix = parse_prefix(str(value))
    if prefix.length == 0:
        what = "a prefix such as 10.1.0.0/16"
        raise expected(what, hint="a default route needs filter:, or default: of ospf and isis")
    return prefix


def _parse_prefix_text(value: object) -> Prefix:
    prefix = _parse_any_prefix_text(value)
    if prefix.family != FAMILY_IPV4:
        raise ValueError
    return prefix


def check_interface_name(value: object) -> str:
    """Return the name of an interface, or a glob. Raises ValueError."""
    if not isinstance(value, str) or not value or re.search(r"[\s/]", value):
        raise ValueError
    if len(value) > LONGEST_GLOB:
        raise expected(f"a glob of at most {LONGEST_GLOB} characters")
    if not is_glob(value) and len(value) > _IFNAME_MAX:
        raise ValueError
    return value


def _check_not_empty(value: object) -> str:
    if not isinstance(value, str):
        raise expected("text")
    if not value:
        raise ValueError
    return value


def _check_hostname(value: object) -> str:
    """Refuse characters that must not be sent to a terminal, as in a peer's name."""
    if not isinstance(value, str):
        raise expected("text")
    if not 1 <= len(value.encode(errors="replace")) <= _HOSTNAME_MAX:
        raise ValueError
    if not value.isprintable():
        raise expected("a name of printable characters")
    return value


def _check_directory(value: object) -> object:
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise ValueError
    return value


def written(
    words: str,
    read: Callable[[Any], object],
    schema: dict[str, Any],
    show: Callable[[Any], object] = unchanged,
) -> Scalar:
    """Return the shape of a scalar that is text or a number; ``read`` raises ValueError."""

    def parse(value: object) -> object:
        if not isinstance(value, str) and not is_number(value):
            raise ValueError
        return read(value)

    return Scalar(words, parse, schema, show)


Hostname = Annotated[
    str,
    Scalar(
        f"a name of 1 to {_HOSTNAME_MAX} bytes",
        _check_hostname,
        {"type": "string", "minLength": 1, "maxLength": _HOSTNAME_MAX},
    ),
]
RouterIdText = Annotated[
    int,
    written(
        "a router id such as 10.255.0.1",
        _parse_router_id,
        {"type": "string", "format": "ipv4"},
        dotted,
    ),
]
AreaText = Annotated[
    int,
    written(
        "an area id: dotted such as 0.0.0.0, or an integer", parse_area, {"type": "string"}, dotted
    ),
]
AnyPrefixText = Annotated[
    Prefix,
    written(
        "a prefix such as 10.1.0.0/16 or 2001:db8::/32, no default route",
        _parse_any_prefix_text,
        {"type": "string", "examples": ["10.1.0.0/16", "2001:db8::/32"]},
        str,
    ),
]
PrefixText = Annotated[
    Prefix,
    written(
        "an IPv4 prefix such as 10.1.0.0/16",
        _parse_prefix_text,
        {"type": "string", "examples": ["10.1.0.0/16"]},
        str,
    ),
]
RouteTable = Annotated[
    int,
    written(
        "main, or a table number 1..4294967295 (not 255)",
        _parse_table,
        {"type": ["string", "integer"], "examples": ["main", 100]},
        _show_table,
    ),
]
HttpListen = Annotated[
    HttpAddress | None,
    Scalar(
        "an address and port such as 127.0.0.1:9547 or [::1]:9547, or off",
        _parse_http,
        {"type": ["string", "boolean"], "examples": ["127.0.0.1:9547", "off"]},
        _show_http,
    ),
]
TtlSecurity = Annotated[
    bool | Literal["tx-only"],
    Scalar(f"true, false or {TX_ONLY}", _parse_ttl_security, {"enum": [False, True, TX_ONLY]}),
]
Directory = Annotated[
    str, Scalar("the absolute path of a directory", _check_directory, {"type": "string"})
]
InterfaceGlob = Annotated[
    str,
    Scalar(
        f"an interface name of at most {_IFNAME_MAX} characters, or a glob such as swp*",
        check_interface_name,
        {"type": "string"},
    ),
]
NotEmpty = Annotated[
    str,
    Scalar("text that is not empty", _check_not_empty, {"type": "string", "minLength": 1}),
]
Limit = Annotated[int, whole(100, 10_000_000)]
"""How many LSAs, LSPs or prefixes one database holds."""
RouteTag = Annotated[int, whole(0, 0xFFFFFFFF)]
"""The tag of redistributed routes; 0: none."""
