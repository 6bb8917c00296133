"""Link rates: a token bucket at the egress of a port, which the daemon reads as its capacity."""

from __future__ import annotations

from fared.core.units import BytesPerSecond
from fared.lab.addressing import Port

_QUEUE_SECONDS = 0.05
_BURST_SECONDS = 0.005
_LEAST_BURST = 16_000
_LEAST_FRAMES = 2
_JUMBO, _LEAST_JUMBO = 9000, 128
"""With 50 ms of 100 Mbit/s, 69 jumbo frames, forty TCP flows have less than two segments each in
flight: they live by timeouts, and links idle meanwhile. Switches hold hundreds of them a port."""


def shape_command(port: Port, rate: BytesPerSecond | None) -> str:
    """Return the ``tc`` command, without ``tc`` itself, that sets a port's rate or frees it."""
    if rate is None:
        return f"qdisc del dev {port.name} root"
    burst = max(_LEAST_BURST, round(rate * _BURST_SECONDS))
    frames = _LEAST_FRAMES if port.mtu < _JUMBO else _LEAST_JUMBO
    queue = max(frames * port.mtu, round(rate * _QUEUE_SECONDS))
    return (
        f"qdisc replace dev {port.name} root handle 1: "
        f"tbf rate {round(rate * 8)}bit burst {burst} limit {burst + queue}"
    )
