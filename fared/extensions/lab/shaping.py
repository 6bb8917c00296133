"""Link rates: a token bucket at the egress of a port, which the daemon reads as its capacity."""

from __future__ import annotations

from fared.core.units import BytesPerSecond
from fared.extensions.lab.port import PortAddresses

_QUEUE_SECONDS = 0.05
_BURST_SECONDS = 0.005
_LEAST_BURST = 16_000
_USUAL, _JUMBO = 1500, 9000
"""A queue holds as many jumbo frames as frames of the usual size. 50 ms of 100 Mbit/s are only 69
jumbo frames: forty TCP flows then have less than two segments each in flight, depend on timeouts,
and links are idle meanwhile. Ports of switches hold hundreds of frames."""


def shape_command(
    port: PortAddresses, rate: BytesPerSecond | None, queue: float | None = None
) -> str:
    """Return the ``tc`` command, without ``tc`` itself, that sets or removes a port's rate.

    ``queue``: how many seconds of traffic wait at most; None: as the MTU requires.
    """
    if rate is None:
        return f"qdisc del dev {port.name} root"
    burst = max(_LEAST_BURST, round(rate * _BURST_SECONDS))
    if queue is None:
        queue = _QUEUE_SECONDS * (1 if port.mtu < _JUMBO else port.mtu / _USUAL)
    waiting = max(2 * port.mtu, round(rate * queue))
    return (
        f"qdisc replace dev {port.name} root handle 1: "
        f"tbf rate {round(rate * 8)}bit burst {burst} limit {burst + waiting}"
    )
