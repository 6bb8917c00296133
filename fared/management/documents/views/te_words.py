"""TE attributes of a link in words, the same for both protocols (RFC 3630 §2.5, RFC 7471 §4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fared.management.documents import human

_BANDWIDTHS: Final = (
    {
        "max_bandwidth": "maximum",
        "max_reservable_bandwidth": "reservable",
        "unreserved_bandwidth": "unreserved",
    },
    {
        "residual_bandwidth": "residual",
        "available_bandwidth": "available",
        "utilized_bandwidth": "utilized",
    },
)
"""A line each: of RFC 3630, and of RFC 7471."""


def te_words(sent: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines for the attributes that were sent (``TeAttributes.sent``)."""
    for line in _BANDWIDTHS:
        rates = [f"{word} {_rates(sent[name])}" for name, word in line.items() if name in sent]
        if rates:
            yield f"bandwidth: {', '.join(rates)}"
    for name, text in _OTHERS.items():
        if name in sent:
            yield text(sent[name])


def ends(what: str, here: object, there: object) -> str:
    """Return what a link says of both of its ends."""
    return f"{what} {here}" + (f", far end {there}" if there else "")


def _rates(value: object) -> str:
    """Format bandwidths: eight equal ones, one for each priority, as one."""
    values = value if isinstance(value, list) else [value]
    texts = (human.bandwidth(v) if isinstance(v, (int, float)) else str(v) for v in values)
    return ", ".join(dict.fromkeys(texts))


def _microseconds(value: float) -> str:
    return human.duration(value / 1e6)


_OTHERS: Final[Mapping[str, Callable[[Any], str]]] = {
    "te_metric": "traffic engineering metric {}".format,
    "admin_group": "administrative group 0x{:08x}".format,
    "delay": lambda value: f"delay {_microseconds(value)}",
    "min_max_delay": lambda pair: f"delay {' to '.join(map(_microseconds, pair))}",
    "delay_variation": lambda value: f"delay variation {_microseconds(value)}",
    "loss": "loss {} %".format,
}
