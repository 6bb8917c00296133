"""Both protocols behind one interface, for tests of rules that OSPF and IS-IS share.

A test that takes the fixture ``protocol`` (``conftest.py``) runs once for each of them, with whole
engines on the virtual network of its protocol. What only one of them has stays in ``tests/ospf``
and ``tests/isis``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

from fared.protocols.igp.dynamic_flooding import DynamicFlooding
from fared.protocols.isis.adjacency.repetitions import Repetitions
from fared.protocols.isis.ids import Level, lsp_id
from fared.protocols.isis.pdu.codec import LSPS, decode_pdu, peek_type
from fared.protocols.isis.pdu.lsp_entries import packed_of, unpack
from fared.protocols.isis.pdu.model import PduType
from fared.protocols.isis.pdu.tlvs import IsReachability, of_type
from fared.protocols.isis.reacquisition import MOST_REQUESTS, T1
from fared.protocols.isis.update.lsp_transmitter import LspTransmitter
from fared.protocols.ospf.adjacency.hello import HelloProtocol
from fared.protocols.ospf.packet.codec import decode_packet
from fared.protocols.ospf.packet.lsa import LsaKey, LsType
from fared.protocols.ospf.packet.packets import LsAck, LsUpdate
from fared.protocols.ospf.settings import GracefulRestartSettings
from tests.igp.engines import EngineNetwork
from tests.isis import net as isis
from tests.ospf import harness as ospf

PERIOD = 60.0
"""Seconds that a graceful restart may take."""


def plain(one: Any, fields: Iterable[str]) -> dict[str, Any]:
    """The fields of an object that are values, not other objects of the engine."""
    values = {name: getattr(one, name) for name in sorted(fields)}
    return {
        name: v for name, v in values.items() if isinstance(v, int | float | bytes | tuple | Enum)
    }


class Protocol(ABC):
    """What tests of both protocols ask of a network."""

    name: str
    metric: str
    """The field of an interface's settings that is its metric."""
    priority: str
    """The same of its priority in the election of a LAN."""
    recognizer: type
    """What recognizes a hello that repeats the last one, in ``repeated``."""
    advertisements: int
    """How many LSAs or LSPs a router originates when the metric of a link changes."""
    copies_of_a_loss: float
    """The most copies of a loss that cross a link at the mean."""
    longest_wait: float
    """Seconds within which what is received is acknowledged."""

    dead_interval: float
    """Seconds of silence after which a neighbor is lost."""
    unhelped: str
    """How a restart ends that no neighbor helps."""
    forgotten: frozenset[str]
    """How restarts end if all routers crashed at once."""
    patience: float
    """Seconds after which a restart ends for a neighbor that does not answer."""

    @abstractmethod
    def network(self, seed: int = 1) -> EngineNetwork:
        """An empty network."""

    @abstractmethod
    def graceful(self, *, helper: bool = True) -> dict[str, Any]:
        """Settings of a router that restarts gracefully, within ``PERIOD``, and maybe helps."""

    @abstractmethod
    def designated(self, net: Any, number: int) -> tuple[int, ...]:
        """The routers with an office on the LAN of a router: DR and BDR, or DIS."""

    @abstractmethod
    def adjacent(self, net: Any) -> bool:
        """Whether all neighbors with carrier are Full, or up."""

    @abstractmethod
    def neighbors(self, net: Any, number: int) -> Any:
        """What a router knows of its neighbors, as plain values."""

    @abstractmethod
    def identity(self, number: int) -> int:
        """The router id or system id of a router."""

    @abstractmethod
    def originator(self, key: Any) -> int:
        """The router id or system id in the key of a database."""

    @abstractmethod
    def instances(self, payload: bytes) -> Iterator[tuple]:
        """The LSAs or LSPs that a packet floods: keys with sequence numbers."""

    @abstractmethod
    def acknowledges(self, payload: bytes) -> Sequence[Any]:
        """The LSAs or LSPs that a packet acknowledges."""

    @abstractmethod
    def acknowledged(self, net: Any) -> bool:
        """Whether no router waits for an acknowledgment, or has deferred a copy."""

    @abstractmethod
    def dynamic(self, net: Any, number: int) -> DynamicFlooding | None:
        """The state of dynamic flooding of a router, None without it."""

    @abstractmethod
    def refresh(self, net: Any, number: int) -> None:
        """Let a router originate with the same contents what it has originated."""

    @abstractmethod
    def lists(self, net: Any, at: int, of: int, neighbor: int) -> bool:
        """Whether a router's database has what another one originated with a link to a third."""

    @abstractmethod
    def flush(self, net: Any, number: int) -> None:
        """Let a router flush what it has originated (in IS-IS: purge its LSP)."""

    def ready(self, net: Any) -> bool:
        """Whether all neighbors are there, and all databases are equal."""
        return self.adjacent(net) and net.in_sync()

    def settle(self, net: Any) -> None:
        """Wait until all is learned, and for a while."""
        net.until(lambda: self.ready(net), 120.0)
        net.run(12.0)
        assert net.in_sync()

    def change(self, net: Any, number: int, ifindex: int) -> None:
        """Another metric of a link of a router."""
        _, settings = net.nodes[number].links[ifindex]
        net.change(number, ifindex, **{self.metric: getattr(settings, self.metric) % 200 + 7})

    def floods(self, payload: bytes) -> bool:
        """Whether a packet floods."""
        return any(True for _ in self.instances(payload))

    def senders(self, net: Any, since: int) -> list[int]:
        """The routers that flooded, once for each packet, since a position of the trace."""
        return [node for _, node, out in net.trace[since:] if self.floods(out.payload)]


class Ospf(Protocol):
    """Area 0; Router-LSA and TE-LSA have the metric of a link."""

    name = "ospf"
    metric = "cost"
    priority = "router_priority"
    recognizer = HelloProtocol
    advertisements = 2
    copies_of_a_loss = 1.72
    longest_wait = 1.0
    dead_interval = 4.0
    unhelped = "inconsistent-lsa"
    forgotten = frozenset({"no-router-lsa"})
    patience = 4.1

    def network(self, seed: int = 1) -> ospf.Network:
        return ospf.Network(seed)

    def graceful(self, *, helper: bool = True) -> dict[str, Any]:
        settings = GracefulRestartSettings(enabled=True, helper=helper)
        return {"graceful_restart": settings, "epoch": 1.8e9}

    def designated(self, net: Any, number: int) -> tuple[int, ...]:
        view = net.interface(number)
        return view.designated_router & 0xFF, view.backup_designated_router & 0xFF

    def adjacent(self, net: Any) -> bool:
        return net.all_full()

    def neighbors(self, net: Any, number: int) -> Any:
        return [plain(neighbor, vars(neighbor)) for neighbor in net.neighbors(number)]

    def identity(self, number: int) -> int:
        return ospf.router_id(number)

    def originator(self, key: Any) -> int:
        return key.advertising_router

    def instances(self, payload: bytes) -> Iterator[tuple]:
        body = decode_packet(payload).body
        for lsa in body.lsas if isinstance(body, LsUpdate) else ():
            yield lsa.header.key, lsa.header.ls_sequence_number

    def acknowledges(self, payload: bytes) -> Sequence[Any]:
        body = decode_packet(payload).body
        return body.lsa_headers if isinstance(body, LsAck) else ()

    def acknowledged(self, net: Any) -> bool:
        return not any(any(net.retransmissions(number)) for number in net.nodes)

    def dynamic(self, net: Any, number: int) -> DynamicFlooding | None:
        return net.nodes[number].engine._flooding.dynamic.area(ospf.BACKBONE)

    def refresh(self, net: Any, number: int) -> None:
        node = net.nodes[number]
        node.engine._originator.everything_changed(force=True)
        net.transmit(node)

    def lists(self, net: Any, at: int, of: int, neighbor: int) -> bool:
        rid = ospf.router_id(of)
        (area,) = net.nodes[at].engine.instance.areas.values()
        entry = area.lsdb.get(LsaKey(LsType.ROUTER, rid, rid))
        return any(link.link_id == ospf.router_id(neighbor) for link in entry.body.links)

    def flush(self, net: Any, number: int) -> None:
        node = net.nodes[number]
        node.engine._self_lsas.flush_all()
        net.transmit(node)


class Isis(Protocol):
    """Level 2."""

    name = "isis"
    metric = "metric"
    priority = "priority"
    recognizer = Repetitions
    advertisements = 1
    copies_of_a_loss = 2.5
    longest_wait = 3.0
    dead_interval = 3.0
    unhelped = "no-helper"
    forgotten = frozenset({"no-helper", "no-neighbors"})
    patience = (MOST_REQUESTS + 1) * T1

    def network(self, seed: int = 1) -> isis.Network:
        return isis.Network(seed)

    def graceful(self, *, helper: bool = True) -> dict[str, Any]:
        return {"restarts": True, "restart_period": PERIOD, "restart_helper": helper}

    def designated(self, net: Any, number: int) -> tuple[int, ...]:
        return (net.instance(number).ordered_circuits()[1].lan[2].dis >> 8,)

    def adjacent(self, net: Any) -> bool:
        return net.all_up()

    def neighbors(self, net: Any, number: int) -> Any:
        found = net.adjacencies(number)
        return [plain(each, set(each.__struct_fields__) - {"settled_by"}) for each in found]

    def identity(self, number: int) -> int:
        return isis.system(number)

    def originator(self, key: Any) -> int:
        return key >> 16

    def instances(self, payload: bytes) -> Iterator[tuple]:
        if peek_type(payload) in LSPS:
            lsp = decode_pdu(payload)
            yield lsp.lsp_id, lsp.sequence_number

    def acknowledges(self, payload: bytes) -> Sequence[Any]:
        if peek_type(payload) is not PduType.L2_PSNP:
            return ()
        return list(unpack(packed_of(decode_pdu(payload).tlvs)))

    def acknowledged(self, net: Any) -> bool:
        transmitters = self.transmitters(net).values()
        return not any(q.waiting for t in transmitters for q in t.active(Level.TWO))

    def transmitters(self, net: Any) -> dict[int, LspTransmitter]:
        """What waits to be sent and acknowledged at each router."""
        return {n: node.engine._flooding._lsp_transmitter for n, node in net.nodes.items()}

    def dynamic(self, net: Any, number: int) -> DynamicFlooding | None:
        return net.nodes[number].engine._flooding.dynamic.level(Level.TWO)

    def refresh(self, net: Any, number: int) -> None:
        node = net.nodes[number]
        node.engine._originator.renew(Level.TWO, lsp_id(number))
        net.transmit(node)

    def lists(self, net: Any, at: int, of: int, neighbor: int) -> bool:
        tlvs = of_type(net.lsp(at, of).tlvs, IsReachability)
        return isis.node(neighbor) in {n.neighbor for tlv in tlvs for n in tlv.neighbors}

    def flush(self, net: Any, number: int) -> None:
        node = net.nodes[number]
        node.engine._flooding.purge_own(Level.TWO, lsp_id(number))
        net.transmit(node)


OSPF, ISIS = PROTOCOLS = Ospf(), Isis()
