"""Routers that only flood: adjacencies are decreed, LSPs are texts, the clock is virtual."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field, replace

from fared.core.ids import SystemId
from fared.core.links import Link
from fared.core.wire import DecodeError
from fared.isis.auth import verify
from fared.isis.circuit import Adjacency, AdjacencyState, Circuit, LanLevel
from fared.isis.events import LogRecord, SendPdu
from fared.isis.flooding import Flooding
from fared.isis.ids import Level, LevelSet, LspId, lsp_id
from fared.isis.instance import Instance
from fared.isis.lsdb import StoredLsp
from fared.isis.pdu.codec import decode_pdu, encode_pdu, exact, pdu_type
from fared.isis.pdu.model import Csnp, Lsp, PduType, Psnp, UnknownTlv
from fared.isis.settings import CircuitKind, CircuitSettings, IsisSettings
from fared.isis.transmit import Transmitter

TEXT_TLV = 250
TWO = Level.TWO
P2P = CircuitSettings()
LAN = replace(P2P, kind=CircuitKind.BROADCAST)
LSPS = (PduType.L1_LSP, PduType.L2_LSP)


def name(number: int, fragment: int = 0) -> LspId:
    """The LSP id of a fragment of router N."""
    return lsp_id(number, 0, fragment)


def mac(number: int, ifindex: int) -> int:
    return number << 16 | ifindex


def make_lsp(
    identifier: int, sequence: int, text: str = "", lifetime: int = 1200, level=TWO
) -> Lsp:
    """An LSP that says something."""
    body = text.encode()
    parts = [body[i : i + 255] for i in range(0, len(body), 255)]
    tlvs = tuple(UnknownTlv(TEXT_TLV, part) for part in parts)
    return Lsp(int(level), LspId(identifier), sequence, lifetime, tlvs=tlvs)


def text_of(entry: StoredLsp) -> str:
    return b"".join(t.value for t in entry.lsp.tlvs if isinstance(t, UnknownTlv)).decode()


class Router:
    """A database with an originator that answers whoever meddles with its LSPs."""

    def __init__(self, number: int, seed: int = 1, now: float = 0.0, **settings) -> None:
        fields = {"system_id": SystemId(number), "areas": (b"\x49\x00\x01",)}
        fields["levels"] = LevelSet.TWO
        self.number = number
        self.instance = Instance(IsisSettings(**{**fields, **settings}), random.Random(seed))
        self.instance.now = now
        self.transmitter = Transmitter(self.instance)
        self.flooding = Flooding(self.instance, self.transmitter, self)
        self.texts: dict[LspId, str] = {}
        self.calls: list[tuple] = []
        self.logs: list[LogRecord] = []
        self.decoded = 0

    # The watcher

    def lsp_changed(self, level: Level, entry: StoredLsp, previous: StoredLsp | None) -> None:
        kind = "purged" if entry.purged else "changed"
        self.calls.append((kind, entry.lsp_id, entry.sequence_number))

    def lsp_removed(self, level: Level, entry: StoredLsp) -> None:
        self.calls.append(("removed", entry.lsp_id, entry.sequence_number))

    def own_lsp_received(self, level: Level, lsp_id: LspId, sequence_number: int) -> None:
        self.calls.append(("own", lsp_id, sequence_number))
        if lsp_id in self.texts:
            self.issue(lsp_id)
        else:
            self.flooding.purge_own(level, lsp_id)

    def own_lsp_refresh(self, level: Level, lsp_id: LspId) -> None:
        self.calls.append(("refresh", lsp_id, 0))
        if lsp_id in self.texts:
            self.issue(lsp_id)

    def told(self, kind: str) -> list[tuple]:
        return [call for call in self.calls if call[0] == kind]

    # The originator

    def say(self, text: str, fragment: int = 0) -> None:
        """Announce something in a fragment of our own."""
        self.texts[name(self.number, fragment)] = text
        self.issue(name(self.number, fragment))

    def issue(self, identifier: LspId) -> None:
        sequence = self.flooding.next_sequence(TWO, identifier)
        if sequence is not None:
            lifetime = self.instance.settings.lsp_lifetime
            lsp = make_lsp(identifier, sequence, self.texts[identifier], lifetime)
            self.flooding.install_own(TWO, lsp)

    def unsay(self, fragment: int = 0) -> None:
        """Take it back."""
        del self.texts[name(self.number, fragment)]
        self.flooding.purge_own(TWO, name(self.number, fragment))

    # What the engine does

    def receive(self, ifindex: int, source: int, payload: bytes) -> None:
        instance = self.instance
        circuit = instance.circuits[ifindex]
        try:
            if pdu_type(payload) in LSPS and not self.flooding.wants(circuit, source, payload):
                return
            pdu = decode_pdu(payload)
            verify(exact(payload), pdu, instance.settings.lsp_keys(TWO), instance.wall)
        except DecodeError as error:
            instance.reject(error.code, source)
            return
        match pdu:
            case Lsp():
                self.decoded += 1
                self.flooding.receive_lsp(circuit, source, pdu, payload)
            case Csnp():
                self.flooding.receive_csnp(circuit, source, pdu)
            case Psnp():
                self.flooding.receive_psnp(circuit, source, pdu)

    def drain(self) -> list[SendPdu]:
        self.flooding.flush()
        outputs = self.instance.take_outputs()
        self.logs += [o for o in outputs if isinstance(o, LogRecord)]
        return [o for o in outputs if isinstance(o, SendPdu)]

    # What tests look at

    def entry(self, number: int, fragment: int = 0) -> StoredLsp | None:
        return self.instance.databases[TWO].get(name(number, fragment))

    def known(self) -> dict[LspId, tuple[int, str]]:
        """Sequence number and text of all LSPs that are alive."""
        entries = self.instance.databases[TWO].ordered()
        return {e.lsp_id: (e.sequence_number, text_of(e)) for e in entries if not e.purged}

    def flags(self) -> int:
        """How many flags are set, in LSPs and in outlets; both tell the same."""
        entries = self.instance.databases[TWO].ordered()
        in_lsps = sum(len(e.srm) + len(e.ssn) for e in entries)
        states = self.flooding._sender.active(TWO)
        kept = {e.lsp_id for e in entries}
        in_outlets = sum(
            len(s.pending) + len(s.unacknowledged) + len(kept & s.acks.keys()) for s in states
        )
        assert in_lsps == in_outlets
        return in_lsps

    @property
    def counts(self) -> Counter[str]:
        return self.instance.counters.lsps


@dataclass
class Cable:
    """A link between (number, ifindex) and (number, ifindex), or a LAN of several of them."""

    ends: tuple[tuple[int, int], ...]
    loss: float = 0.0
    delay: float = 0.0005
    jitter: float = 0.0
    cut: bool = False


@dataclass
class Network:
    """Routers and cables; ``run`` moves the clock."""

    seed: int = 1
    now: float = 0.0
    routers: dict[int, Router] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    sent: list[tuple[float, int, SendPdu]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self._queue: list[tuple[float, int, int, int, int, bytes]] = []
        self._order = 0
        self._by_end: dict[tuple[int, int], Cable] = {}

    def add(self, *numbers: int, **settings) -> None:
        for number in numbers:
            seed = self.rng.randrange(1 << 30)
            self.routers[number] = Router(number, seed, self.now, **settings)

    def __getitem__(self, number: int) -> Router:
        return self.routers[number]

    def join(self, *numbers: int, settings: CircuitSettings | None = None, **cable) -> Cable:
        """A link of two routers, or a LAN of more; the first one is designated on a LAN."""
        mtu = cable.pop("mtu", 1500)
        up = cable.pop("up", True)
        settings = settings or (P2P if len(numbers) == 2 else LAN)
        ends = tuple((n, 1 + sum(1 for end in self._by_end if end[0] == n)) for n in numbers)
        made = Cable(ends, **cable)
        self.cables.append(made)
        for number, ifindex in ends:
            self._by_end[number, ifindex] = made
            circuit = Circuit(Link(ifindex, f"eth{ifindex}", True, mtu), settings, ifindex)
            self.routers[number].instance.circuits[ifindex] = circuit
        if up:
            self.up(made)
        return made

    def up(self, cable: Cable) -> None:
        """All adjacencies of a cable come up."""
        cable.cut = False
        for end in cable.ends:
            self._up_at(cable, end)
        self._send_all()

    def _up_at(self, cable: Cable, end: tuple[int, int]) -> None:
        number, ifindex = end
        router = self.routers[number]
        router.instance.now = self.now
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
            router.instance.now = self.now
            circuit = router.instance.circuits[ifindex]
            circuit.adjacency = None
            circuit.lan.clear()
            router.flooding.adjacency_down(circuit, TWO)

    def restart(self, number: int, **settings) -> Router:
        """The router forgets everything, its neighbors' adjacencies go down and come up."""
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
        self.routers[number].instance.now = self.now
        self.routers[number].say(text, fragment)
        self._send_all()

    def unsay(self, number: int, fragment: int = 0) -> None:
        self.routers[number].instance.now = self.now
        self.routers[number].unsay(fragment)
        self._send_all()

    def inject(self, number: int, ifindex: int, pdu: Lsp | bytes, key=None) -> None:
        """Something arrives at a router as if its neighbor on that interface had sent it."""
        payload = pdu if isinstance(pdu, bytes) else encode_pdu(pdu, key)
        cable = self._by_end[number, ifindex]
        source = next(mac(*end) for end in cable.ends if end != (number, ifindex))
        self._post(0.0, number, ifindex, source, payload)

    def _post(self, delay: float, number: int, ifindex: int, source: int, payload: bytes) -> None:
        self._order += 1
        item = (self.now + delay, self._order, number, ifindex, source, payload)
        heapq.heappush(self._queue, item)

    def _send_all(self) -> None:
        for number in sorted(self.routers):
            self._send(number)

    def _send(self, number: int) -> None:
        for output in self.routers[number].drain():
            self.sent.append((self.now, number, output))
            cable = self._by_end[number, output.ifindex]
            for end in cable.ends:
                if end == (number, output.ifindex) or cable.cut:
                    continue
                if self.rng.random() < cable.loss:
                    continue
                delay = cable.delay + cable.jitter * self.rng.random()
                self._post(delay, *end, mac(number, output.ifindex), output.payload)

    def run(self, duration: float) -> None:
        """Let that many seconds pass."""
        until = self.now + duration
        for _ in range(200_000):
            times = [self._queue[0][0]] if self._queue else []
            for router in self.routers.values():
                deadline = router.instance.timers.next_deadline()
                if deadline is not None:
                    times.append(deadline)
            if not times or min(times) > until:
                self.now = until
                return
            assert min(times) >= self.now - 1e-9, "a timer in the past: a busy loop"
            self.now = max(self.now, min(times))
            self._step()
        raise AssertionError("the network does not come to rest")

    def _step(self) -> None:
        touched: set[int] = set()
        while self._queue and self._queue[0][0] <= self.now:
            _, _, number, ifindex, source, payload = heapq.heappop(self._queue)
            self.routers[number].instance.now = self.now
            self.routers[number].receive(ifindex, source, payload)
            touched.add(number)
        for number, router in self.routers.items():
            router.instance.now = self.now
            if router.instance.timers.fire(self.now):
                touched.add(number)
        for number in sorted(touched):
            self._send(number)

    # What tests look at

    def pdus(self, *kinds: PduType, since: float = 0.0, by: int | None = None) -> list[tuple]:
        """(time, sender, PDU) of what was sent."""
        return [
            (at, number, decode_pdu(output.payload))
            for at, number, output in self.sent
            if at >= since and pdu_type(output.payload) in kinds and (by is None or number == by)
        ]

    def agree(self) -> bool:
        """Whether all databases are equal."""
        known = [router.known() for router in self.routers.values()]
        return all(each == known[0] for each in known)
