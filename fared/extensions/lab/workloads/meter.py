"""Utilization of links while a workload runs, from the counters of the routers' kernels."""

from __future__ import annotations

import time
from collections.abc import Iterator

from fared.core.units import BytesPerSecond
from fared.extensions.lab.expected import VETH_RATE, Rate
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.workloads.report import LinkUse


class LinkMeter:
    """Bytes sent by every router's ports to other routers, sampled at intervals."""

    def __init__(self, fabric: Fabric, rate: Rate, interval: float) -> None:
        self._fabric = fabric
        self._rate = rate
        self._interval = interval
        self._ports = [port for node in fabric.plan.routers for port in node.fabric_ports]
        self._use: list[list[float]] = [[] for _ in self._ports]
        self._last = list(self._read())
        self._begun = time.monotonic()
        self._sampled = 0.0
        self.times: list[float] = []

    @property
    def due(self) -> float:
        """The time of the next sample."""
        return self._sampled + self._interval

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._begun

    def sample(self, now: float) -> None:
        """Read all counters if a sample is due."""
        if now >= self.due:
            self.last(now)

    def last(self, now: float) -> None:
        """Read all counters now."""
        sent = list(self._read())
        for use, port, before, after in zip(self._use, self._ports, self._last, sent, strict=True):
            use.append(round((after - before) / (now - self._sampled) / self._capacity(port), 4))
        self._last, self._sampled = sent, now
        self.times.append(round(now, 3))

    def links(self) -> tuple[LinkUse, ...]:
        """Return the utilization of each port."""
        return tuple(
            LinkUse(port.node, port.name, port.peer, self._capacity(port), tuple(use))
            for port, use in zip(self._ports, self._use, strict=True)
        )

    def _capacity(self, port: PortAddresses) -> BytesPerSecond:
        return self._rate(port) or VETH_RATE

    def _read(self) -> Iterator[int]:
        for node in self._fabric.plan.routers:
            counters = self._fabric.view(node.name).counters()
            yield from (counters[port.name].sent_bytes for port in node.fabric_ports)
