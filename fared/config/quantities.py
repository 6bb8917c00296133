"""Quantities of the configuration file, with their units: ``400G``, ``50ms``, ``3%``, ``500/s``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fared.config.values import written
from fared.core.units import format_bandwidth, parse_bandwidth, parse_duration, parse_percent
from fared.paths.te.sub_tlvs import MAX_24_BITS

_MICROSECOND = 1e-6


def _bandwidth_or(word: str) -> Callable[[str | float], float | None]:
    """Return a parser of bandwidths, of which ``word`` is None."""
    return lambda value: None if value == word else parse_bandwidth(value)


def _show_bandwidth_or(word: str) -> Callable[[float | None], str | int]:
    return lambda value: word if value is None else _show_bits(value)


def _show_bits(value: float) -> str | int:
    text = format_bandwidth(value)
    return text if parse_bandwidth(text) == value else round(value * 8)


def _show_duration(value: float) -> str:
    milliseconds = round(value * 1e3, 6)
    return f"{value:g}s" if milliseconds % 1000 == 0 and value else f"{milliseconds:g}ms"


def _parse_delay(value: str | float) -> float | None:
    if value == "none":
        return None
    seconds = parse_duration(value)
    if not _MICROSECOND <= seconds <= MAX_24_BITS * _MICROSECOND:
        raise ValueError
    return seconds


def _parse_path_delay(value: str | float) -> float | None:
    return None if value == "none" else _seconds(0.0, 60.0)(value)


def _show_delay(value: float | None) -> str:
    return "none" if value is None else _show_duration(value)


def parse_whole_seconds(value: str | float) -> int:
    """Parse an interval of a hello protocol. Raises ValueError unless 1..65535 whole seconds."""
    seconds = parse_duration(value)
    if not seconds.is_integer() or not 1 <= seconds <= 65535:
        raise ValueError
    return int(seconds)


def _seconds(low: float, high: float) -> Callable[[str | float], float]:
    """Return a parser of durations within ``low..high`` seconds."""

    def parse(value: str | float) -> float:
        seconds = parse_duration(value)
        if not low <= seconds <= high:
            raise ValueError
        return seconds

    return parse


def _show_seconds(value: float) -> float:
    return int(value) if value.is_integer() else value


def _parse_ratio(value: str | float) -> float:
    if isinstance(value, str):
        return parse_percent(value)
    if not 0 <= value <= 1:
        raise ValueError
    return float(value)


def _show_ratio(value: float) -> str:
    return f"{round(value * 100, 7):g}%"


def _parse_rate(value: str | float) -> float:
    if isinstance(value, str):
        number, slash, unit = value.partition("/")
        if slash and unit.strip() != "s":
            raise ValueError
        value = float(number)
    if not 1 <= value <= 1_000_000:
        raise ValueError
    return float(value)


def _show_rate(value: float) -> str:
    return f"{value:g}/s" if value < 1e5 else f"{value:.0f}/s"


Bandwidth = Annotated[
    float | None,
    written(
        "auto, or bits/s such as 400G or 25M (1 kbit/s to 10 Pbit/s)",
        _bandwidth_or("auto"),
        {"type": ["string", "number"], "examples": ["auto", "400G", 25000000]},
        _show_bandwidth_or("auto"),
    ),
]
"""Bytes/s; None is ``auto``."""
LeastBandwidth = Annotated[
    float | None,
    written(
        "none, or bits/s such as 25G (1 kbit/s to 10 Pbit/s)",
        _bandwidth_or("none"),
        {"type": ["string", "number"], "examples": ["none", "25G"]},
        _show_bandwidth_or("none"),
    ),
]
"""Bytes/s; None: no limit."""
HostDemand = Annotated[
    float | None,
    written(
        "ports, or bits/s such as 6.4T (1 kbit/s to 10 Pbit/s)",
        _bandwidth_or("ports"),
        {"type": ["string", "number"], "examples": ["ports", "6.4T"]},
        _show_bandwidth_or("ports"),
    ),
]
"""Bytes/s; None: the capacity of all ports."""
Delay = Annotated[
    float | None,
    written(
        "none, or a duration such as 20ms (1us to 16.7s)",
        _parse_delay,
        {"type": ["string", "number"], "examples": ["none", "20ms", "350us"]},
        _show_delay,
    ),
]
"""Seconds; None: not known."""
PathDelay = Annotated[
    float | None,
    written(
        "none, or a duration such as 5ms (0s to 1m)",
        _parse_path_delay,
        {"type": ["string", "number"], "examples": ["none", "0s", "5ms"]},
        _show_delay,
    ),
]
"""Seconds; None: no limit."""
Duration = Annotated[
    float,
    written(
        "a duration such as 50ms, 2s or 5m",
        parse_duration,
        {"type": ["string", "number"], "examples": ["50ms", "2s"]},
        _show_duration,
    ),
]
"""Seconds."""
Period = Annotated[
    float,
    written(
        "10ms to 1h",
        _seconds(0.01, 3600),
        {"type": ["string", "number"], "examples": ["100ms", "1s"]},
        _show_duration,
    ),
]
"""Seconds, the period of a repeated action."""
Seconds = Annotated[
    float,
    written(
        "seconds, 1ms to 1h", _seconds(0.001, 3600), {"type": ["string", "number"]}, _show_seconds
    ),
]
WholeSeconds = Annotated[
    int,
    written(
        "whole seconds, 1..65535",
        parse_whole_seconds,
        {"type": ["string", "integer"], "minimum": 1, "maximum": 65535},
    ),
]
Ratio = Annotated[
    float,
    written(
        "a percentage such as 3%, or a ratio 0..1",
        _parse_ratio,
        {"type": ["string", "number"], "examples": ["3%", 0.03]},
        _show_ratio,
    ),
]
"""0..1."""
Rate = Annotated[
    float,
    written(
        "a number a second such as 500/s, 1 to 1000000",
        _parse_rate,
        {"type": ["string", "number"], "examples": ["500/s", 500]},
        _show_rate,
    ),
]
"""Events a second."""
