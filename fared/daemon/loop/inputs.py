"""Inputs: packets and streams from sockets, links and routes from the kernel, for the router.

Links are processed before packets that arrive at the same time, since a packet on an interface that
is down does not count. A protocol has packets or streams; the code for streams is loaded with the
first one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, get_args

from fared.core.links import Link
from fared.core.streams import StreamOutput
from fared.daemon.loop.burst import Burst
from fared.daemon.loop.defence import Defence
from fared.daemon.loop.portions import Portion
from fared.daemon.loop.rate_limited import RateLimitedLog
from fared.daemon.loop.repairs import Repairs
from fared.daemon.loop.runner import PacketIo, Runner
from fared.daemon.loop.sysctls import SettingsGuard
from fared.kernel import monitor
from fared.kernel.fib import KernelFib
from fared.kernel.isis_socket import IsisSockets
from fared.kernel.ospf_socket import OspfSockets
from fared.kernel.routes import LocalRoutesChanged
from fared.paths.fib.model import ForwardingTable
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.protocols import ISIS, OSPF
from fared.router.router import Router

if TYPE_CHECKING:
    from fared.daemon.loop.streams.edge import StreamEdge

SOCKETS: Mapping[str, type[OspfSockets | IsisSockets]] = MappingProxyType(
    {OSPF: OspfSockets, ISIS: IsisSockets}
)
"""Of protocols that have packets."""


_QUIET = 1.0
"""Seconds after which it is noticed that a quiet neighbor lives."""
_OF_PACKET = 100
"""Bytes of streams that count as a packet where memory is returned after floods."""


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


class KernelParts(Protocol):
    """What inputs use of the kernel's side (``daemon.kernel``)."""

    fib: KernelFib
    table: ForwardingTable
    monitor: monitor.KernelMonitor
    sysctls: SettingsGuard


class Inputs:
    """Reads the kernel and the sockets, and feeds the ``runner`` of a router, which it creates.

    ``request_audit`` gets a reason; ``every`` has a job done regularly, by its name.
    """

    def __init__(
        self,
        router: Router,
        kernel: KernelParts,
        operation: LinkOperation,
        *,
        request_audit: Callable[[str], None],
        on_tick: Callable[[float], None],
        every: Callable[[float, str, Callable[[], None]], None],
        wants_debug: Callable[[], bool],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        defence: Defence,
    ) -> None:
        self._fib, self._monitor, self._sysctls = kernel.fib, kernel.monitor, kernel.sysctls
        self._operation, self._request_audit, self._log = operation, request_audit, log
        self._every = every
        self._overloads: dict[int, RateLimitedLog] = {}
        self._not_opened = RateLimitedLog(log.warning, "interface-not-opened")
        self._opened = RateLimitedLog(log.info, "interface-opened")
        loop = asyncio.get_running_loop()
        burst = self.burst = Burst(self._packets, self._dropped, self._receive_hellos)
        self.io: Mapping[str, Sockets] = {
            name: SOCKETS[name](partial(burst.take_all, name), loop, self._socket_trouble, burst)
            for name in router.settings.protocols
            if name in SOCKETS
        }
        self.streams: dict[str, StreamEdge] = {}
        """Of protocols that have some."""
        burst.io = {name: io.interfaces for name, io in self.io.items()}
        burst.hellos = {name: io.is_hello for name, io in self.io.items()}
        self.runner = Runner(
            router,
            kernel.table,
            self.io,
            log,
            catch_up=self._catch_up,
            on_refusal=self._refused,
            read_links=kernel.monitor.read_links,
            on_tick=on_tick,
            wants_debug=wants_debug,
            defence=defence,
        )
        for kind in get_args(StreamOutput):
            self.runner.serve(kind, self._perform)
        self.repairs = Repairs(kernel.fib.notices.take, self.runner.feed)

    @property
    def counters(self) -> Mapping[str, Counter[str]]:
        """Those of all sockets, by protocol."""
        found = {name: io.counters for name, io in self.io.items()}
        return found | {name: edge.counters for name, edge in self.streams.items()}

    @property
    def taken(self) -> int:
        """Packets so far; of streams, as many as what was read would fill."""
        read = sum([edge.received for edge in self.streams.values()])
        return self.burst.taken + read // _OF_PACKET

    def close(self) -> None:
        """Close all sockets; nothing more is said to neighbors."""
        self.repairs.stop()
        for io in self.io.values():
            io.close_all()
        for edge in self.streams.values():
            edge.close_all()

    def _perform(self, proto: str, output: StreamOutput) -> None:
        """Do what the engine of a protocol wants of its streams."""
        edge = self.streams.get(proto)
        if edge is None:
            from fared.daemon.loop.streams.edge import StreamEdge  # noqa: PLC0415 - most routers have none

            runner = self.runner
            edge = self.streams[proto] = StreamEdge(
                lambda inputs: runner.take(events.To(proto, one) for one in inputs),
                runner.flush,
                lambda: [(link.ifindex, link.name) for link in self._monitor.links.values()],
                self._log,
                report=self._socket_trouble,
            )
            self._every(_QUIET, f"streams of {proto}", edge.read_quiet)
        edge.perform(output)

    def forget_senders(self) -> None:
        """Forget what is remembered of the headers of received packets."""
        for io in self.io.values():
            io.forget_senders()

    def kernel_event(self, event: monitor.KernelEvent) -> None:
        """Process an event of the monitor; ``links_settled`` completes those of links."""
        match event:
            case monitor.InterfaceChanged(link, previous):
                if previous is None:
                    self._sysctls.check_soon()
                self.runner.take(self._operation.link_changed(link, previous))
            case monitor.InterfaceRemoved(link):
                self.runner.take([igp.LinkRemoved(link.ifindex)])
            case LocalRoutesChanged(changes):
                self.runner.feed(igp.ExternalRoutes(changes))
            case monitor.ForeignFibChange():
                self.repairs.noticed()
                self._request_audit("foreign-change")
            case monitor.Overflow(source):
                self._log.warning("netlink-overflow", source=source)
                self._request_audit("overflow")
            case monitor.NotRead(source, error):
                self._log.warning("kernel-not-read", source=source, error=error)

    def links_settled(self) -> None:
        """Process all links that changed together."""
        runner, now = self.runner, asyncio.get_running_loop().time()
        runner.router.detected(now - self._monitor.arrived)
        runner.flush()

    def _refused(self) -> None:
        """Process the kernel's own changes, before the router learns of a refusal."""
        self._monitor.read_links()
        if None in self._fib.foreign.values():
            self._request_audit("refused")  # to find the route that holds the place

    def _catch_up(self) -> None:
        """Process what arrived while the loop was stalled, links before packets."""
        self._monitor.read_links()
        self.burst.catch_up(self._receive_all)
        for edge in self.streams.values():
            edge.read_all()

    def _receive_all(self) -> None:
        for io in self.io.values():
            io.receive_all()

    def _receive_hellos(self) -> None:
        for io in self.io.values():
            io.receive_hellos()

    def _socket_trouble(self, ifindex: int, error: OSError | None) -> None:
        """Report that an interface's sockets cannot be opened and are retried, or are open now."""
        link = self._monitor.links.get(ifindex)
        name = link.name if link is not None else str(ifindex)
        if error is None:
            self._opened(interface=name)
        else:
            self._not_opened(interface=name, error=error.strerror)

    def _dropped(self, proto: str, packet: igp.PacketReceived) -> None:
        """Count a packet for which there was no room, and report its interface once a minute."""
        ifindex = packet.ifindex
        io = self.io[proto]
        kind = io.kind(packet.payload)
        io.counters[f"dropped-{kind}"] += 1
        report = self._overloads.get(ifindex)
        if report is None:
            report = self._overloads[ifindex] = RateLimitedLog(self._log.warning, "packets-dropped")
        link = self._monitor.links.get(ifindex)
        name = link.name if link is not None else str(ifindex)
        report(proto=proto, interface=name, kind=kind, effect="neighbors retransmit")

    def _packets(self, portions: list[Portion], arrived: float) -> float:
        """Process packets that arrived together; return the seconds that routes took."""
        return self.runner.receive(portions, arrived)
