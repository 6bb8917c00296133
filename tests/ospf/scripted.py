"""One engine, and a neighbor whose packets the test sends explicitly."""

from __future__ import annotations

import enum
import random

import msgspec
from msgspec.structs import replace

from fared.core.ids import parse_dotted
from fared.protocols.igp.events import LinkChanged, PacketReceived, SendPacket
from fared.protocols.ospf.engine import OspfEngine
from fared.protocols.ospf.packet.bodies import RouterLsa
from fared.protocols.ospf.packet.body import encode_router_lsa
from fared.protocols.ospf.packet.codec import decode_packet, encode_packet
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, Lsa, LsaKey, LsType, encode_lsa
from fared.protocols.ospf.packet.packets import (
    DatabaseDescription,
    DdFlags,
    Hello,
    LsAck,
    LsRequest,
    LsUpdate,
)
from fared.protocols.ospf.settings import AreaSettings, InterfaceSettings, OspfSettings
from tests.igp.engines import Clocked, all_outputs
from tests.ospf.harness import BACKBONE, FAST, make_link, router_id

E = 0x02
E_O = 0x42
ALL_SPF = parse_dotted("224.0.0.5")
OURS, THEIRS = parse_dotted("10.128.0.0"), parse_dotted("10.128.0.1")


class Scripted(Clocked):
    """Engine 10.255.0.5 with one link; the scripted neighbor is 10.255.0.9 by default."""

    def __init__(
        self,
        peer: int = 9,
        settings: InterfaceSettings = FAST,
        *,
        own: int = 5,
        mtu: int = 1500,
        length: int = 31,
        **engine_settings,
    ) -> None:
        self.now = 0.0
        self.me = router_id(own)
        self.peer = router_id(peer)
        engine_settings.setdefault("areas", (AreaSettings(BACKBONE),))
        self.engine = OspfEngine(
            OspfSettings(router_id=self.me, **engine_settings), random.Random(7)
        )
        self.settings = settings
        self.link = make_link(2, OURS, mtu=mtu, length=length)
        self.outputs: list = []
        self._inbox: list = []
        self.handle(LinkChanged(self.link, settings))

    def handle(self, event) -> None:
        self.engine.handle(event, self.now)
        self.take_outputs()

    def changed(self, **changes) -> LinkChanged:
        """The link with another state, MTU or addresses."""
        self.link = replace(self.link, **changes)
        return LinkChanged(self.link, self.settings)

    def take_outputs(self) -> None:
        for output in all_outputs(self.engine):
            self.outputs.append(output)
            if isinstance(output, SendPacket):
                self._inbox.append(decode_packet(output.payload).body)

    def raw(
        self, payload: bytes, source: int = THEIRS, destination: int = ALL_SPF, ttl: int = 1
    ) -> None:
        self.handle(PacketReceived(2, source, destination, payload, ttl))

    def send(
        self, body, *, peer: int | None = None, area: int = 0, source: int = THEIRS, **header
    ) -> None:
        """Send a packet; ``header`` may name another ``destination`` or ``ttl``."""
        self.raw(encode_packet(peer or self.peer, area, body), source, **header)

    def got(self, kind: type | None = None) -> list:
        """The packets that the engine sent since the last call, optionally of one type."""
        taken, self._inbox = self._inbox, []
        return [b for b in taken if kind is None or isinstance(b, kind)]

    def acks(self) -> list[LsAck]:
        """The acknowledgments that the engine sends after their delay."""
        self.at(self.now + self.engine.instance.settings.ack_delay + 0.001)
        return self.got(LsAck)

    def hello(self, *heard: int, **changes) -> Hello:
        hello = Hello(
            network_mask=0xFFFFFFFE,
            hello_interval=self.settings.hello_interval,
            options=E,
            router_priority=1,
            router_dead_interval=self.settings.router_dead_interval,
            designated_router=0,
            backup_designated_router=0,
            neighbors=heard,
        )
        return replace(hello, **changes)

    def greet(self, *heard: int, **changes) -> None:
        self.send(self.hello(*heard, **changes))

    @property
    def neighbor(self):
        seen = self.engine.instance.neighbors()
        return seen[0] if seen else None

    @property
    def state(self) -> str:
        return self.neighbor.state.label if self.neighbor else "Down"

    @property
    def retransmissions(self) -> int:
        """The length of its link state retransmission list."""
        return self.engine.instance.retransmissions()[self.neighbor]

    def to_exstart(self) -> int:
        """Exchange hellos; return the DD sequence number that the engine proposes."""
        self.greet(self.me)
        assert self.state == "ExStart"
        return self.got(DatabaseDescription)[-1].dd_sequence_number

    def to_exchange(self, sequence: int = 1000) -> None:
        """Negotiate as master (the scripted neighbor must have the larger router id)."""
        self.to_exstart()
        self.send(dd(DdFlags.I | DdFlags.M | DdFlags.MS, sequence))
        assert self.state == "Exchange"

    def to_full(self, headers=(), options: int = E_O) -> None:
        """Complete the exchange as master, with an empty database."""
        self.to_exstart()
        self.send(dd(DdFlags.I | DdFlags.M | DdFlags.MS, 1000, options=options))
        self.send(dd(DdFlags.MS, 1001, *headers, options=options))
        if not headers:
            assert self.state == "Full"

    def errors(self) -> dict[str, int]:
        return dict(self.engine.counters.errors)

    def lsas(self) -> dict:
        """(LSA, age) by key, in area 0."""
        lsdb = self.engine.instance.areas[BACKBONE].lsdb
        return {entry.key: (entry.lsa, entry.age(self.now)) for entry in lsdb}

    def own_router_lsa(self) -> Lsa:
        lsa, _ = self.lsas()[router_lsa(self.me)]
        return lsa

    def state_without_counters(self):
        """The plain values of interfaces and neighbors, and the databases.

        ``accepted`` is left out: which checks have passed, not their effect.
        """
        instance = self.engine.instance
        parts = [instance, *instance.ordered_interfaces(), *instance.neighbors()]
        kinds = (int, float, str, bytes, tuple, enum.Enum, msgspec.Struct)
        values = [
            {k: v for k, v in vars(part).items() if isinstance(v, kinds) and k != "accepted"}
            for part in parts
        ]
        return values, list(self.engine.databases_text(self.now))


def router_lsa(router: int, link_state_id: int | None = None) -> LsaKey:
    """The key of a router LSA; its id is that of the router (RFC 2328 §12.4.1), unless forged."""
    return LsaKey(LsType.ROUTER, router if link_state_id is None else link_state_id, router)


def dd(flags: int, sequence: int, *headers, options: int = E_O, mtu: int = 1500):
    return DatabaseDescription(mtu, options, int(flags), sequence, tuple(headers))


def make_lsa(
    adv: int,
    seq: int = INITIAL_SEQUENCE_NUMBER,
    *,
    links=(),
    age: int = 1,
    ls_type: int = 1,
    lsid: int | None = None,
    body: bytes | None = None,
) -> Lsa:
    """Return a router LSA, or an LSA of another type with the given body."""
    if body is None:
        body = encode_router_lsa(RouterLsa(0, tuple(links)))
    return encode_lsa(
        ls_age=age,
        options=E,
        ls_type=ls_type,
        link_state_id=adv if lsid is None else lsid,
        advertising_router=adv,
        ls_sequence_number=seq,
        body=body,
    )


def update(*lsas: Lsa) -> LsUpdate:
    return LsUpdate(tuple(lsas))


def ack(*lsas: Lsa) -> LsAck:
    return LsAck(tuple(lsa.header for lsa in lsas))


def request(*keys) -> LsRequest:
    return LsRequest(tuple(keys))
