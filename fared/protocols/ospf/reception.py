"""Received packets: checked, authenticated, decoded, and given to the part they are for.

A packet that fails a check is counted and dropped (RFC 2328 §8.2); nothing of it is processed.
"""

from __future__ import annotations

from fared.core.ids import dotted
from fared.core.wire import DecodeError
from fared.protocols.igp.counters import OTHER
from fared.protocols.igp.events import PacketReceived
from fared.protocols.igp.refusals import Differs, explain
from fared.protocols.ospf.adjacency.exchange import Exchange
from fared.protocols.ospf.adjacency.hello import HelloProtocol
from fared.protocols.ospf.flooding.procedure import Flooding
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface
from fared.protocols.ospf.packet.codec import DecodedUpdates, decode_packet
from fared.protocols.ospf.packet.packets import (
    DatabaseDescription,
    Hello,
    LsAck,
    LsRequest,
    LsUpdate,
    Packet,
    PacketType,
)
from fared.protocols.ospf.processing.authenticate import refusal
from fared.protocols.ospf.processing.checks import (
    AREA_MISMATCH,
    OWN_PACKET,
    SILENT,
    UNKNOWN_NEIGHBOR,
    envelope_problem,
    header_problem,
)

_ROUTER_ID = slice(4, 8)
_LABELS = {kind.value: kind.label for kind in PacketType}
_TYPE, _HELLO, _ACK = slice(1, 2), bytes((PacketType.HELLO,)), bytes((PacketType.LS_ACK,))


class Reception:
    """The way of a packet from an interface to the protocol (RFC 2328 §8.2)."""

    def __init__(
        self, instance: Instance, hello: HelloProtocol, exchange: Exchange, flooding: Flooding
    ) -> None:
        self._instance = instance
        self._hello = hello
        self._exchange = exchange
        self._flooding = flooding
        self._router_id = int(instance.router_id).to_bytes(4, "big")
        self._decoded = DecodedUpdates()

    def receive(self, event: PacketReceived) -> None:
        """Check, authenticate and decode a packet, then dispatch it."""
        instance = self._instance
        interface = instance.interfaces.get(event.ifindex)
        envelope = None if interface is None else _envelope(interface, event)
        if interface is None or interface.accepted != envelope:
            problem = envelope_problem(interface, event)
            if interface is not None and problem == OWN_PACKET:
                self._examine_own(interface, event)
            if problem is not None or interface is None:
                if problem not in SILENT:
                    self._reject_envelope(problem or "", event)
                return
            interface.accepted = envelope
        refused = refusal(instance, interface, event.source, event.payload)
        if refused is not None:
            self._reject(interface, event, refused.reason, what=refused.what)
            return
        try:
            packet = decode_packet(event.payload, packed=True, updates=self._decoded)
        except DecodeError as error:
            self._reject(interface, event, error.code, what=str(error))
            return
        problem = header_problem(instance, interface, event, packet)
        if problem is not None:
            differs = None
            if problem == AREA_MISMATCH:
                differs = dotted(packet.area_id), dotted(interface.settings.area)
            self._reject(interface, event, problem, differs, dotted(packet.router_id))
            return
        interface.counters.received[_LABELS[packet.packet_type]] += 1
        self._dispatch(interface, event, packet)

    def _examine_own(self, interface: Interface, event: PacketReceived) -> None:
        """Tell that a neighbor has our address: of our own packets only the router id is ours."""
        router_id = event.payload[_ROUTER_ID]
        if event.payload[_TYPE] == _HELLO and router_id != self._router_id:
            name = dotted(int.from_bytes(router_id, "big"))
            process, cause = self._instance.process, "duplicate-address"
            process.refusals.add(interface, event.source, (cause, None), process.now, name)
            if process.may_log(event.source, cause):
                process.log(
                    "warning",
                    "ospf-neighbor-problem",
                    reason=cause,
                    source=dotted(event.source),
                    interface=interface.name,
                    router_id=name,
                    what=explain(cause),
                )

    def _reject_envelope(self, problem: str, event: PacketReceived) -> None:
        interface, process = self._instance.interfaces.get(event.ifindex), self._instance.process
        if interface is not None and event.payload[_TYPE] == _HELLO:
            name = dotted(int.from_bytes(event.payload[_ROUTER_ID], "big"))
            process.refusals.add(interface, event.source, (problem, None), process.now, name)
        process.reject(
            problem,
            event.source,
            interface=interface,
            kind=_label(event),
            destination=dotted(event.destination),
            ttl=event.ttl,
        )

    def _reject(
        self,
        interface: Interface,
        event: PacketReceived,
        reason: str,
        differs: Differs = None,
        router_id: str | None = None,
        **fields: object,
    ) -> None:
        """Reject a packet; why a hello is refused is kept."""
        process, source = self._instance.process, event.source
        if event.payload[_TYPE] == _HELLO:
            process.refusals.add(interface, source, (reason, differs), process.now, router_id)
        # A router that forms an adjacency may speak before we have received its hello.
        patience = interface.settings.hello_interval if reason == UNKNOWN_NEIGHBOR else 0.0
        if router_id is not None:
            fields["router_id"] = router_id
        kind = _label(event)
        process.reject(reason, source, patience, differs, interface=interface, kind=kind, **fields)

    def _dispatch(self, interface: Interface, event: PacketReceived, packet: Packet) -> None:
        """Process a packet by type (RFC 2328 §8.2, table 11)."""
        body = packet.body
        if not isinstance(body, LsUpdate):
            self._flooding.duplicates.settle()  # they came first
        if isinstance(body, Hello):
            self._hello.receive(interface, event, packet, body)
            return
        neighbor = interface.neighbors[interface.key(packet.router_id, event.source)]
        match body:
            case DatabaseDescription():
                self._exchange.receive_description(neighbor, body)
            case LsRequest():
                self._exchange.receive_request(neighbor, body)
            case LsUpdate():
                self._flooding.receive_update(neighbor, body)
            case LsAck():
                self._flooding.receive_ack(neighbor, body)


def _label(event: PacketReceived) -> str:
    """The type that a packet says it has, for counters."""
    return _LABELS.get(int.from_bytes(event.payload[_TYPE], "big"), OTHER)


def is_acknowledgment(event: PacketReceived) -> bool:
    """Whether a packet says that it is a link state acknowledgment."""
    return event.payload[_TYPE] == _ACK


def _envelope(interface: Interface, event: PacketReceived) -> tuple[object, ...]:
    """The values that ``envelope_problem`` depends on: those of the last packet pass again."""
    return (
        event.source,
        event.destination,
        event.ttl,
        interface.link,
        interface.settings,
        interface.state,
        interface.borrowable,
    )
