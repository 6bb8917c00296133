"""Inputs: packets from sockets, links and routes from the kernel, passed to the router.

``Daemon`` creates it. Links are processed before packets that arrive at the same time, since a
packet on an interface that is down does not count.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Container, Mapping
from typing import Any, Protocol

from fared.config import Config
from fared.core.links import Link
from fared.daemon.loop.audit import Auditor
from fared.daemon.loop.burst import Burst
from fared.daemon.loop.portions import Portion
from fared.daemon.loop.rate_limited import RateLimitedLog
from fared.daemon.loop.repairs import Repairs
from fared.daemon.loop.runner import PacketIo, Runner
from fared.daemon.loop.sysctls import SettingsGuard
from fared.kernel import monitor
from fared.kernel.fib import KernelFib
from fared.kernel.routes import LocalRoutesChanged
from fared.protocols.igp import events as igp
from fared.router import events


class Sockets(PacketIo, Protocol):
    """The sockets of one protocol; failures are counted."""

    counters: Counter[str]
    interfaces: Container[int]

    def is_hello(self, packet: igp.PacketReceived) -> bool:
        """Whether a packet is a hello, sent as hellos are."""

    def kind(self, payload: bytes) -> str:
        """Return the type of a packet."""

    def receive_all(self) -> None:
        """Read all queued packets, or all hellos."""

    def receive_hellos(self) -> None:
        """Read hellos that do not wait behind other packets."""

    def forget_senders(self) -> None:
        """Forget what is remembered of the headers of received packets."""

    def close_all(self) -> None:
        """Close the sockets of all interfaces."""


class LinkOperation(Protocol):
    """What links get from the configuration and from operators (``change.operation``)."""

    def link_changed(self, link: Link, previous: Link | None) -> list[events.Input]:
        """A link changed in the kernel: return its events."""


class InputsHost(Protocol):
    """The parts of the daemon that inputs pass through."""

    config: Config
    fib: KernelFib
    monitor: monitor.KernelMonitor
    sysctls: SettingsGuard
    auditor: Auditor
    repairs: Repairs
    runner: Runner
    io: Mapping[str, Sockets]
    log: Any  # structlog's filtering logger has no public type

    @property
    def operation(self) -> LinkOperation:
        """What links get."""


class Inputs:
    """Reads the kernel and the sockets, and feeds the runner."""

    def __init__(self, host: InputsHost) -> None:
        self._host = host
        self.burst = Burst(self._packets, self._dropped)
        self.burst.receive_hellos = self._receive_hellos
        self._overloads: dict[int, RateLimitedLog] = {}
        self._not_opened = RateLimitedLog(host.log.warning, "interface-not-opened")
        self._opened = RateLimitedLog(host.log.info, "interface-opened")

    def kernel_event(self, event: monitor.KernelEvent) -> None:
        """Process an event of the monitor; ``links_settled`` completes those of links."""
        host = self._host
        match event:
            case monitor.InterfaceChanged(link, previous):
                if previous is None:
                    host.sysctls.check_soon()
                host.runner.take(host.operation.link_changed(link, previous))
            case monitor.InterfaceRemoved(link):
                host.runner.take([igp.LinkRemoved(link.ifindex)])
            case LocalRoutesChanged(changes):
                host.runner.feed(igp.ExternalRoutes(changes))
            case monitor.ForeignFibChange():
                host.repairs.noticed()
                host.auditor.request("foreign-change")
            case monitor.Overflow(source):
                host.log.warning("netlink-overflow", source=source)
                host.auditor.request("overflow")
            case monitor.NotRead(source, error):
                host.log.warning("kernel-not-read", source=source, error=error)

    def links_settled(self) -> None:
        """Process all links that changed together."""
        runner, now = self._host.runner, asyncio.get_running_loop().time()
        runner.router.detected(now - self._host.monitor.arrived)
        runner.flush()

    def refused(self) -> None:
        """Process the kernel's own changes, before the router learns of a refusal."""
        host = self._host
        host.monitor.read_links()
        if None in host.fib.foreign.values():
            host.auditor.request("refused")  # to find the route that holds the place

    def catch_up(self) -> None:
        """Process what arrived while the loop was stalled, links before packets."""
        self._host.monitor.read_links()
        self.burst.catch_up(self._receive_all)

    def _receive_all(self) -> None:
        for io in self._host.io.values():
            io.receive_all()

    def _receive_hellos(self) -> None:
        for io in self._host.io.values():
            io.receive_hellos()

    def socket_trouble(self, ifindex: int, error: OSError | None) -> None:
        """Report that an interface's sockets cannot be opened and are retried, or are open now."""
        link = self._host.monitor.links.get(ifindex)
        name = link.name if link is not None else str(ifindex)
        if error is None:
            self._opened(interface=name)
        else:
            self._not_opened(interface=name, error=error.strerror)

    def _dropped(self, proto: str, packet: igp.PacketReceived) -> None:
        """Count a packet for which there was no room, and report its interface once a minute."""
        host, ifindex = self._host, packet.ifindex
        io = host.io[proto]
        kind = io.kind(packet.payload)
        io.counters[f"dropped-{kind}"] += 1
        report = self._overloads.get(ifindex)
        if report is None:
            report = self._overloads[ifindex] = RateLimitedLog(host.log.warning, "packets-dropped")
        link = host.monitor.links.get(ifindex)
        name = link.name if link is not None else str(ifindex)
        report(proto=proto, interface=name, kind=kind, effect="neighbors retransmit")

    def _packets(self, portions: list[Portion], arrived: float) -> float:
        """Process packets that arrived together; return the seconds that routes took."""
        return self._host.runner.receive(portions, arrived)
