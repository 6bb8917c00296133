"""Formats numbers of the JSON documents for people; for the command line and the page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from fared.core.units import format_bandwidth

DASH = "-"
PROTOCOLS = {"ospf": "OSPF", "isis": "IS-IS", "bgp": "BGP"}
"""Names of the protocols for people."""
LOG_LEVELS = ("debug", "info", "warning", "error")
"""Levels of the log, the least important first."""
RATES = "rates in bit/s"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def bandwidth(bytes_per_second: float | None) -> str:
    """Format bytes/s as ``400G``."""
    return format_bandwidth(bytes_per_second)


def share(ratio: float | None) -> str:
    """Format a ratio as ``7.7%``, or ``25%`` where that is exact."""
    if ratio is None:
        return DASH
    percent = ratio * 100
    return f"{percent:.0f}%" if abs(percent - round(percent)) < 0.05 else f"{percent:.1f}%"


def duration(seconds: float | None) -> str:
    """Format seconds as ``350us``, ``12.4ms``, ``1.5s``, ``2m13s``, ``4h02m`` or ``3d04h``."""
    if seconds is None:
        return DASH
    if seconds < 0:
        return "0s"
    if seconds < _MINUTE:
        return _short(seconds)
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02d}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02d}m"
    return f"{whole // _DAY}d{whole % _DAY // _HOUR:02d}h"


def delay(seconds: float | UnsetType | None) -> str:
    """Format the delay of a link or a path, which may be left out of a document."""
    return DASH if seconds is UNSET else duration(seconds)


def _short(seconds: float) -> str:
    if seconds == 0:
        return "0s"
    if seconds < 0.0009995:
        return f"{seconds * 1e6:.0f}us"
    if seconds < 0.9995:
        return f"{float(f'{seconds * 1e3:.3g}'):g}ms"
    return f"{float(f'{seconds:.2g}') if seconds < 9.95 else round(seconds):g}s"


def router(router_id: str, hostname: str | None) -> str:
    """Return the hostname of a router, or its id if it has none."""
    return hostname or router_id


def area_title(area: str) -> str:
    """Return ``Area 0.0.0.0`` or ``Level 1``."""
    return area.replace("level-", "Level ") if area.startswith("level-") else f"Area {area}"


def ordering(name: str) -> list[tuple[bool, int, str]]:
    """Return a key that orders leaf2 before leaf10."""
    parts = re.split(r"(\d+)", name)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def because(causes: Sequence[str]) -> str:
    """Return the first cause and the number of others; the JSON has all."""
    if not causes:
        return ""
    more = len(causes) - 1
    return f"{causes[0]} (+{more} more)" if more else causes[0]


def kind(*, network: bool, transit: bool, last_resort: bool) -> str:
    """Return what is unusual about a node of the topology or the fabric."""
    words = {"network": network, "no transit": not transit, "last resort": last_resort}
    return ", ".join(word for word, holds in words.items() if holds)
