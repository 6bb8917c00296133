"""Routers that only flood: tests set adjacencies, LSPs hold a text, the clock is virtual."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from fared.core.ids import SystemId
from fared.core.links import Link
from fared.core.wire import DecodeError
from fared.extensions.sim.wire import Cable, End, VirtualWire
from fared.protocols.igp.events import LogRecord, SendPacket
from fared.protocols.isis.circuit import Adjacency, AdjacencyState, Circuit, LanLevel
from fared.protocols.isis.ids import Level, LevelSet, LspId, lsp_id
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.auth import verify
from fared.protocols.isis.pdu.codec import (
    LSPS,
    decode_pdu,
    decode_raw,
    encode_pdu,
    peek_type,
    read_pdu,
)
from fared.protocols.isis.pdu.model import Csnp, Lsp, PduType, Psnp
from fared.protocols.isis.pdu.tlvs import UnknownTlv
from fared.protocols.isis.settings import CircuitKind, CircuitSettings, IsisSettings
from fared.protocols.isis.transmit import Transmitter
from fared.protocols.isis.update.database import DatabaseWatcher
from fared.protocols.isis.update.flooding import Flooding
from fared.protocols.isis.update.lsp_transmitter import LspTransmitter

TEXT_TLV = 250
TWO = Level.TWO
P2P = CircuitSettings()
LAN = replace(P2P, kind=CircuitKind.BROADCAST)


def name(number: int, fragment: int = 0) -> LspId:
    """The LSP id of a fragment of router N."""
    return lsp_id(number, 0, fragment)


def mac(number: int, ifindex: int) -> int:
    return number << 16 | ifindex


def make_lsp(
    identifier: int, sequence: int, text: str = "", lifetime: int = 1200, level=TWO
) -> Lsp:
    """An LSP that contains a text."""
    body = text.encode()
    parts = [body[i : i + 255] for i in range(0, len(body), 255)]
    tlvs = tuple(UnknownTlv(TEXT_TLV, part) for part in parts)
    return Lsp(int(level), LspId(identifier), sequence, lifetime, tlvs=tlvs)


def text_of(entry: StoredLsp) -> str:
    return b"".join(t.value for t in entry.lsp.tlvs if isinstance(t, UnknownTlv)).decode()


class Router:
    """A database with an originator that reissues its LSPs if others change or purge them."""

    def __init__(self, number: int, seed: int = 1, now: float = 0.0, **settings) -> None:
        fields = {"system_id": SystemId(number), "areas": (b"\x49\x00\x01",)}
        fields["levels"] = LevelSet.TWO
        self.number = number
        self.instance = Instance(IsisSettings(**{**fields, **settings}), random.Random(seed))
        self.instance.process.now = now
        self.transmitter = Transmitter(self.instance)
        watcher = DatabaseWatcher(
            self.lsp_changed, self.lsp_removed, self.own_received, self.own_refresh
        )
        self.flooding = Flooding(self.instance, self.transmitter, watcher)
        self.texts: dict[LspId, str] = {}
        self.calls: list[tuple] = []
        self.logs: list[LogRecord] = []

    # The watcher

    def lsp_changed(self, level: Level, entry: StoredLsp, previous: StoredLsp | None) -> None:
        kind = "purged" if entry.purged else "changed"
        self.calls.append((kind, entry.lsp_id, entry.sequence_number))

    def lsp_removed(self, level: Level, entry: StoredLsp) -> None:
        self.calls.append(("removed", entry.lsp_id, entry.sequence_number))

    def own_received(self, level: Level, lsp_id: LspId, sequence_number: int) -> None:
        self.calls.append(("own", lsp_id, sequence_number))
        if lsp_id in self.texts:
            self.generate(lsp_id)
        else:
            self.flooding.purge_own(level, lsp_id)

    def own_refresh(self, level: Level, lsp_id: LspId) -> None:
        self.calls.append(("refresh", lsp_id, 0))
        if lsp_id in self.texts:
            self.generate(lsp_id)

    def told(self, kind: str) -> list[tuple]:
        return [call for call in self.calls if call[0] == kind]

    # The originator

    def say(self, text: str, fragment: int = 0) -> None:
        """Originate a fragment with a text."""
        self.texts[name(self.number, fragment)] = text
        self.generate(name(self.number, fragment))

    def generate(self, identifier: LspId) -> None:
        sequence = self.flooding.next_sequence(TWO, identifier)
        if sequence is not None:
            lifetime = self.instance.settings.lsp_lifetime
            lsp = make_lsp(identifier, sequence, self.texts[identifier], lifetime)
            self.flooding.install_own(TWO, lsp)

    def unsay(self, fragment: int = 0) -> None:
        """Withdraw a fragment."""
        del self.texts[name(self.number, fragment)]
        self.flooding.purge_own(TWO, name(self.number, fragment))

    # The part of the engine

    def receive(self, ifindex: int, source: int, payload: bytes) -> None:
        instance = self.instance
        circuit = instance.circuits[ifindex]
        try:
            kind = peek_type(payload)
            if kind in LSPS:
                self.flooding.receive(circuit, source, kind, payload)
                return
            raw = read_pdu(payload)
            pdu = decode_raw(raw)
            verify(raw, pdu, instance.settings.lsp_keys(TWO), instance.process.wall)
        except DecodeError as error:
            instance.process.reject(error.code, source)
            return
        match pdu:
            case Csnp():
                self.flooding.receive_csnp(circuit, source, pdu)
            case Psnp():
                self.flooding.receive_psnp(circuit, source, pdu)

    def take_outputs(self) -> list[SendPacket]:
        self.flooding.flush()
        outputs = self.instance.process.take_outputs()
        self.logs += [o for o in outputs if isinstance(o, LogRecord)]
        return [o for o in outputs if isinstance(o, SendPacket)]

    # What tests look at

    @property
    def lsp_transmitter(self) -> LspTransmitter:
        """What waits to be sent, and acknowledged, on each circuit."""
        return self.flooding._lsp_transmitter

    def entry(self, number: int, fragment: int = 0) -> StoredLsp | None:
        return self.instance.databases[TWO].get(name(number, fragment))

    def known(self) -> dict[LspId, tuple[int, str]]:
        """Sequence number and text of all LSPs that are not purged."""
        entries = self.instance.databases[TWO].ordered()
        return {e.lsp_id: (e.sequence_number, text_of(e)) for e in entries if not e.purged}

    def flags(self) -> int:
        """The number of flags set, of LSPs in the database."""
        states = self.lsp_transmitter.active(TWO)
        kept = self.instance.databases[TWO].entries.keys()
        for queue in states:
            deferred = set(queue.shared.deferred_for(queue.bit))
            assert queue.pending.keys() | queue.unacknowledged.keys() | deferred <= kept
            assert queue.ssn == sum(bool(bits & queue.bit) for bits in queue.shared.acks.values())
        return sum(queue.waiting + queue.ssn for queue in states)

    @property
    def counts(self) -> Counter[str]:
        return self.instance.process.counters.lsdb


class Network(VirtualWire[tuple[int, bytes]]):
    """Routers and cables; a frame consists of its source and its payload."""

    max_steps = 200_000

    def __init__(self, seed: int = 1, now: float = 0.0) -> None:
        super().__init__(seed, now)
        self.routers: dict[int, Router] = {}
        self.sent: list[tuple[float, int, SendPacket]] = []
        self._touched: set[int] = set()

    def add(self, *numbers: int, **settings) -> None:
        for number in numbers:
            seed = self.rng.randrange(1 << 30)
            self.routers[number] = Router(number, seed, self.now, **settings)

    def __getitem__(self, number: int) -> Router:
        return self.routers[number]

    def join(self, *numbers: int, settings: CircuitSettings | None = None, **cable) -> Cable:
        """A link of two routers, or a LAN of more, of which the first router is the DIS."""
        mtu = cable.pop("mtu", 1500)
        up = cable.pop("up", True)
        settings = settings or (P2P if len(numbers) == 2 else LAN)
        made = self.lay(Cable(tuple((n, self.free_port(n)) for n in numbers), **cable))
        for number, ifindex in made.ends:
            circuit = Circuit(Link(ifindex, f"eth{ifindex}", True, mtu), settings, ifindex)
            self.routers[number].instance.circuits[ifindex] = circuit
        if up:
            self.up(made)
        return made

    def up(self, cable: Cable) -> None:
        """All adjacencies of a cable come up."""
        cable.cut = False
        for end in cable.ends:
            self.up_at(cable, end)
        self.send_all()

    def up_alone(self, cable: Cable, end: tuple[int, int]) -> None:
        """The adjacency of a cable comes up at one end."""
        self.up_at(cable, end)
        self.send_all()

    def up_at(self, cable: Cable, end: tuple[int, int]) -> None:
        number, ifindex = end
        router = self.routers[number]
        router.instance.process.now = self.now
        circuit = router.instance.circuits[ifindex]
        circuit.up = True
        for other in cable.ends:
            if other != end:
                adjacency = Adjacency(circuit, SystemId(other[0]), mac(*other), LevelSet.TWO)
                adjacency.state = AdjacencyState.UP
                if circuit.broadcast:
                    lan = circuit.lan.setdefault(TWO, LanLevel(TWO))
                    lan.adjacencies[adjacency.snpa] = adjacency
                else:
                    circuit.adjacency = adjacency
                router.flooding.adjacency_up(circuit, TWO)
        if circuit.broadcast:
            designated = cable.ends[0][0]
            circuit.lan[TWO].dis = designated << 8 | 1
            circuit.lan[TWO].is_dis = designated == number
            router.flooding.dis_changed(circuit, TWO)

    def down(self, cable: Cable) -> None:
        """All adjacencies of a cable go down."""
        cable.cut = True
        for number, ifindex in cable.ends:
            router = self.routers[number]
            router.instance.process.now = self.now
            circuit = router.instance.circuits[ifindex]
            circuit.adjacency = None
            circuit.lan.clear()
            router.flooding.adjacency_down(circuit, TWO)

    def restart(self, number: int, **settings) -> Router:
        """The router restarts without state; the adjacencies of its neighbors go down and up."""
        cables = [c for c in self.cables if any(n == number for n, _ in c.ends) and not c.cut]
        for cable in cables:
            self.down(cable)
        old = self.routers[number]
        self.add(number, **settings)
        self.routers[number].instance.circuits.update(old.instance.circuits)
        for cable in cables:
            self.up(cable)
        return self.routers[number]

    def say(self, number: int, text: str, fragment: int = 0) -> None:
        self.routers[number].instance.process.now = self.now
        self.routers[number].say(text, fragment)
        self.send_all()

    def unsay(self, number: int, fragment: int = 0) -> None:
        self.routers[number].instance.process.now = self.now
        self.routers[number].unsay(fragment)
        self.send_all()

    def inject(self, number: int, ifindex: int, pdu: Lsp | bytes, key=None) -> None:
        """Deliver a PDU to a router as if its neighbor on that interface had sent it."""
        payload = pdu if isinstance(pdu, bytes) else encode_pdu(pdu, key)
        cable = self.by_end[number, ifindex]
        source = next(mac(*end) for end in cable.ends if end != (number, ifindex))
        self.post((number, ifindex), (source, payload))

    def send_all(self) -> None:
        for number in sorted(self.routers):
            self._send(number)

    def _send(self, number: int) -> None:
        for output in self.routers[number].take_outputs():
            self.sent.append((self.now, number, output))
            end = (number, output.ifindex)
            self.carry(end, (mac(*end), output.payload))

    def deliver(self, end: End, frame: tuple[int, bytes]) -> None:
        """Deliver all frames of this moment before any router sends."""
        self.routers[end[0]].instance.process.now = self.now
        self.routers[end[0]].receive(end[1], *frame)
        self._touched.add(end[0])

    def deadlines(self) -> Iterator[float]:
        """The deadlines of the routers."""
        for router in self.routers.values():
            if (deadline := router.instance.process.timers.next_deadline()) is not None:
                yield deadline

    def fire(self) -> None:
        """Wake all routers and send their output."""
        for number, router in self.routers.items():
            router.instance.process.now = self.now
            if router.instance.process.timers.fire(self.now):
                self._touched.add(number)
        for number in sorted(self._touched):
            self._send(number)
        self._touched.clear()

    # What tests look at

    def pdus(self, *kinds: PduType, since: float = 0.0, by: int | None = None) -> list[tuple]:
        """The PDUs sent: time, sender, PDU."""
        return [
            (at, number, decode_pdu(output.payload))
            for at, number, output in self.sent
            if at >= since and peek_type(output.payload) in kinds and (by is None or number == by)
        ]

    def agree(self) -> bool:
        """Whether all databases are equal."""
        known = [router.known() for router in self.routers.values()]
        return all(each == known[0] for each in known)
