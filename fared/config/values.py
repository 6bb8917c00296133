"""Scalar values of the config file: how people write them, how the daemon holds them.

Each type reads the human form (``400G``, ``50ms``, ``3%``, ``0.0.0.0``) and writes it back, so
that a configuration printed by the daemon is again a valid configuration. What a validator
expects is part of its error: the loader shows it next to the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BeforeValidator, GetCoreSchemaHandler, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from fared.core.ids import FAMILY_IPV4, Prefix, dotted, parse_area, parse_dotted, parse_prefix
from fared.core.units import format_bandwidth, parse_bandwidth, parse_duration

_PERCENT = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*%\s*$")
_HTTP = re.compile(r"^(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[\w.-]+)):(?P<port>\d{1,5})$")
_TABLES = {"main": 254, "default": 253}
_LOCAL_TABLE = 255
_IFNAME_MAX = 15  # IFNAMSIZ without its NUL
_MAX_U32 = 0xFFFFFFFF

T = TypeVar("T")


class HttpAddress(NamedTuple):
    """Where the HTTP server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def expected(what: str, hint: str = "", field: str = "") -> PydanticCustomError:
    """Build the error of a value that is not ``what``.

    ``hint`` says why in a few words more; ``field`` names the key to point at when a validator
    of a whole section raises.
    """
    return PydanticCustomError(
        "expected", "{expected}", {"expected": what, "hint": hint, "field": field}
    )


def is_number(value: object) -> bool:
    """Whether YAML read a number; ``true`` is not one."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _scalar(parse: Callable[[Any], T], what: str) -> Callable[[object], T]:
    """Make a validator that turns every ValueError of ``parse`` into one about ``what``."""

    def validate(value: object) -> T:
        if not isinstance(value, str) and not is_number(value):
            raise expected(what)
        try:
            return parse(value)
        except ValueError as error:
            raise expected(what) from error

    return validate


@dataclass(frozen=True)
class Whole:
    """Annotation of an integer within ``low..high``."""

    low: int
    high: int

    def _check(self, value: object) -> int:
        if (
            not isinstance(value, int)
            or isinstance(value, bool)
            or not self.low <= value <= self.high
        ):
            raise expected(f"an integer {self.low}..{self.high}")
        return value

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        inner = core_schema.int_schema(ge=self.low, le=self.high)
        return core_schema.no_info_before_validator_function(self._check, inner)


def _parse_router_id(value: str | float) -> int:
    number = parse_dotted(str(value))
    if number == 0:
        raise ValueError
    return number


def _parse_bandwidth(value: str | float) -> float | None:
    return None if value == "auto" else parse_bandwidth(value)


def _show_bandwidth(value: float | None) -> str | int:
    if value is None:
        return "auto"
    text = format_bandwidth(value)
    return text if parse_bandwidth(text) == value else round(value * 8)


def _show_duration(value: float) -> str:
    milliseconds = round(value * 1e3, 6)
    return f"{value:g}s" if milliseconds % 1000 == 0 and value else f"{milliseconds:g}ms"


def parse_whole_seconds(value: str | float) -> int:
    """Read an interval of a hello protocol. Raises ValueError unless 1..65535 whole seconds."""
    seconds = parse_duration(value)
    if not seconds.is_integer() or not 1 <= seconds <= 65535:
        raise ValueError
    return int(seconds)


def _parse_seconds(value: str | float) -> float:
    seconds = parse_duration(value)
    if not 0.001 <= seconds <= 3600:
        raise ValueError
    return seconds


def _parse_period(value: str | float) -> float:
    seconds = parse_duration(value)
    if not 0.01 <= seconds <= 3600:
        raise ValueError
    return seconds


def _parse_ratio(value: str | float) -> float:
    if isinstance(value, str):
        match = _PERCENT.match(value)
        if match is None:
            raise ValueError
        value = round(float(match[1]) / 100, 9)
    if not 0 <= value <= 1:
        raise ValueError
    return float(value)


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
        raise expected("an address and port such as 127.0.0.1:9547 or [::1]:9547, or off")
    return HttpAddress(match["v6"] or match["host"], int(match["port"]))


def _parse_any_prefix_text(value: object) -> Prefix:
    prefix = parse_prefix(str(value))
    if prefix.length == 0:
        raise ValueError
    return prefix


def _parse_prefix_text(value: object) -> Prefix:
    prefix = _parse_any_prefix_text(value)
    if prefix.family != FAMILY_IPV4:
        raise ValueError
    return prefix


def _check_interface_name(value: object) -> str:
    what = f"an interface name of at most {_IFNAME_MAX} characters, or a glob such as swp*"
    if not isinstance(value, str) or not value or re.search(r"[\s/]", value):
        raise expected(what)
    if not is_glob(value) and len(value) > _IFNAME_MAX:
        raise expected(what)
    return value


def is_glob(name: str) -> bool:
    """Whether an interface key is a pattern rather than one name."""
    return any(char in name for char in "*?[")


RouterIdText = Annotated[
    int,
    BeforeValidator(_scalar(_parse_router_id, "a router id such as 10.255.0.1")),
    PlainSerializer(dotted),
    WithJsonSchema({"type": "string", "format": "ipv4"}),
]
AreaText = Annotated[
    int,
    BeforeValidator(_scalar(parse_area, "an area id: dotted such as 0.0.0.0, or an integer")),
    PlainSerializer(dotted),
    WithJsonSchema({"type": "string"}),
]
AnyPrefixText = Annotated[
    Prefix,
    BeforeValidator(
        _scalar(
            _parse_any_prefix_text,
            "a prefix such as 10.1.0.0/16 or 2001:db8::/32, no default route",
        )
    ),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "examples": ["10.1.0.0/16", "2001:db8::/32"]}),
]
PrefixText = Annotated[
    Prefix,
    BeforeValidator(_scalar(_parse_prefix_text, "an IPv4 prefix such as 10.1.0.0/16")),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "examples": ["10.1.0.0/16"]}),
]
Bandwidth = Annotated[
    float | None,
    BeforeValidator(
        _scalar(_parse_bandwidth, "auto, or bits/s such as 400G or 25M (1 kbit/s to 10 Pbit/s)")
    ),
    PlainSerializer(_show_bandwidth),
    WithJsonSchema({"type": ["string", "number"], "examples": ["auto", "400G", 25000000]}),
]
"""Bytes/s; None is ``auto``."""
Duration = Annotated[
    float,
    BeforeValidator(_scalar(parse_duration, "a duration such as 50ms, 2s or 5m")),
    PlainSerializer(_show_duration),
    WithJsonSchema({"type": ["string", "number"], "examples": ["50ms", "2s"]}),
]
"""Seconds."""
Period = Annotated[
    float,
    BeforeValidator(_scalar(_parse_period, "10ms to 1h")),
    PlainSerializer(_show_duration),
    WithJsonSchema({"type": ["string", "number"], "examples": ["100ms", "1s"]}),
]
"""Seconds, of what is done again and again."""
Seconds = Annotated[
    float,
    BeforeValidator(_scalar(_parse_seconds, "seconds, 1ms to 1h")),
    PlainSerializer(lambda value: int(value) if value.is_integer() else value),
    WithJsonSchema({"type": ["string", "number"]}),
]
WholeSeconds = Annotated[
    int,
    BeforeValidator(_scalar(parse_whole_seconds, "whole seconds, 1..65535")),
    WithJsonSchema({"type": ["string", "integer"], "minimum": 1, "maximum": 65535}),
]
Ratio = Annotated[
    float,
    BeforeValidator(_scalar(_parse_ratio, "a percentage such as 3%, or a ratio 0..1")),
    PlainSerializer(lambda value: f"{round(value * 100, 7):g}%"),
    WithJsonSchema({"type": ["string", "number"], "examples": ["3%", 0.03]}),
]
"""0..1."""
RouteTable = Annotated[
    int,
    BeforeValidator(_scalar(_parse_table, "main, or a table number 1..4294967295 (not 255)")),
    PlainSerializer(_show_table),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["main", 100]}),
]
HttpListen = Annotated[
    HttpAddress | None,
    BeforeValidator(_parse_http),
    PlainSerializer(lambda value: "off" if value is None else str(value)),
    WithJsonSchema({"type": ["string", "boolean"], "examples": ["127.0.0.1:9547", "off"]}),
]
InterfaceGlob = Annotated[str, BeforeValidator(_check_interface_name)]
