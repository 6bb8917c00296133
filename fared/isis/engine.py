"""The IS-IS engine: inputs in, outputs out, no clock, no sockets.

The engine wires the parts and dispatches to them. Work that can wait for the end of an input,
and gains from being done once for several (originating, sending LSPs, TED blocks), happens in
``drain``; so call ``drain`` after each ``handle`` and ``tick``, or after a batch of them, and
look at ``next_deadline`` after that.
"""

from __future__ import annotations

from fared.core.keys import Keyring
from fared.core.rng import Rng
from fared.core.wire import DecodeError
from fared.isis.adjacency import all_adjacencies
from fared.isis.auth import verify
from fared.isis.circuit import Adjacency, Circuit
from fared.isis.events import (
    CircuitChanged,
    ExternalRoutes,
    Input,
    LinkRemoved,
    LoadMeasured,
    Output,
    PduReceived,
    RoutesComputed,
    SettingsApplied,
    ShutdownRequested,
)
from fared.isis.external import External
from fared.isis.flooding import Flooding
from fared.isis.hello import HelloProtocol
from fared.isis.ids import Level, LevelSet, LspId
from fared.isis.instance import Counters, Instance
from fared.isis.leak import Leaking
from fared.isis.links import CircuitManager
from fared.isis.lsdb import StoredLsp
from fared.isis.originate import Originator
from fared.isis.pdu.codec import decode_pdu, exact, pdu_type
from fared.isis.pdu.model import Csnp, LanHello, Lsp, P2pHello, Pdu, PduType, Psnp
from fared.isis.settings import IsisSettings
from fared.isis.snapshot import IsisSnapshot, take_snapshot
from fared.isis.ted import TedBuilder
from fared.isis.transmit import Transmitter

_SETTLING = 1.0
"""Seconds in which a new neighbor's database is expected to have come."""
_HELLOS = (PduType.L1_LAN_HELLO, PduType.L2_LAN_HELLO, PduType.P2P_HELLO)
_LSPS = {int(kind): kind for kind in (PduType.L1_LSP, PduType.L2_LSP)}
_TYPE = 4
_TYPE_MASK = 0x1F


class IsisEngine:
    """One IS-IS process (ISO 10589, RFC 1195) of one router."""

    def __init__(self, settings: IsisSettings, rng: Rng) -> None:
        self._stopped = False
        self._start(settings, rng)

    def _start(self, settings: IsisSettings, rng: Rng) -> None:
        instance = self._instance = Instance(settings, rng)
        transmitter = Transmitter(instance)
        self._flooding = Flooding(instance, transmitter, self)
        self._hello = HelloProtocol(instance, transmitter, self)
        self._circuits = CircuitManager(instance, self._hello, self)
        self._originator = Originator(instance, self._flooding)
        self._ted = TedBuilder(instance)
        self._leaking = Leaking(instance, self._originator, self._ted)
        self._external = External(instance, self._originator)

    # The contract

    def handle(self, event: Input, now: float) -> None:
        """Process one input."""
        if self._stopped:
            return
        self._instance.now = now
        self._originator.begin()
        match event:
            case PduReceived():
                self._receive(event)
            case CircuitChanged():
                self._circuits.changed(event.link, event.settings)
            case LinkRemoved():
                self._circuits.removed(event.ifindex)
            case LoadMeasured():
                self._load_measured(event)
            case SettingsApplied():
                self._apply(event.settings)
            case ShutdownRequested():
                self._shutdown()
            case RoutesComputed():
                self._leaking.routes_computed(event)
            case ExternalRoutes():
                self._external.routes_changed(event)

    def tick(self, now: float) -> None:
        """Fire what is due."""
        self._instance.now = now
        self._instance.timers.fire(now)

    def next_deadline(self) -> float | None:
        """When to call ``tick`` at the latest."""
        return self._instance.timers.next_deadline()

    def drain(self) -> list[Output]:
        """Finish what handle and tick began and return all outputs, in order."""
        if not self._stopped:
            self._settle_attached()
            self._leaking.settle()
            self._external.settle()
            self._originator.settle()
            self._flooding.flush()
            self._ted.flush()
        return self._instance.take_outputs()

    def snapshot(self, now: float) -> IsisSnapshot:
        """An immutable picture of the whole process."""
        return take_snapshot(
            self._instance,
            now,
            overloaded=self._originator.overloaded,
            attached=self._originator.attached,
            hostnames={level: self._ted.hostnames(level) for level in self._instance.databases},
        )

    @property
    def counters(self) -> Counters:
        """The counters of the process, live."""
        return self._instance.counters

    def adjacency_progress(self) -> tuple[int, int, int]:
        """Circuits that could have a neighbor, those that have, neighbors still forming.

        One that came up a moment ago is still forming: its database is on its way. So are all
        while LSPs are awaited that neighbors are known to have.
        """
        speaking = [c for c in self._instance.circuits.values() if c.speaks]
        known = [all_adjacencies(circuit) for circuit in speaking]
        having = sum(any(adjacency.up for adjacency in found) for found in known)
        forming = sum(self._forming(adjacency) for found in known for adjacency in found)
        return len(speaking), having, forming + self._flooding.awaited()

    def _forming(self, adjacency: Adjacency) -> bool:
        since = adjacency.up_since
        return since is None or self._instance.now < since + _SETTLING

    @property
    def in_several_areas(self) -> bool:
        """Whether routes are to be told to this engine (``RoutesComputed``)."""
        return self._instance.settings.levels is LevelSet.BOTH

    def activity(self) -> int:
        """LSPs originated, received or sent so far: stands still in a quiet network."""
        return sum(self._instance.counters.lsps.values())

    # PDUs

    def _receive(self, event: PduReceived) -> None:
        """ISO 10589 §7.3.15, §8.2.4, §8.4.2: what is malformed or not authentic goes no further."""
        instance = self._instance
        circuit = instance.circuits.get(event.ifindex)
        if circuit is None or not circuit.speaks:
            return
        if event.source and event.source == circuit.link.hardware_address:
            return  # our own multicast, come back
        try:
            payload = event.payload
            lsp = _LSPS.get(payload[_TYPE] & _TYPE_MASK) if len(payload) > _TYPE else None
            former = None
            if lsp is not None:
                if not self._flooding.wants(circuit, event.source, payload):
                    instance.counters.pdus["received", lsp.label] += 1
                    return
                former = self._flooding.former(payload)
            raw = exact(payload)
            kind = pdu_type(raw)
            code = instance.settings.path_capacity_code
            pdu = decode_pdu(raw, capacity_code=code, former=former)
            verify(raw, pdu, self._keys(circuit, kind), instance.wall)
        except DecodeError as error:
            instance.reject(error.code, event.source, interface=circuit.name, what=str(error))
            return
        instance.counters.pdus["received", kind.label] += 1
        self._dispatch(circuit, event.source, pdu, raw)

    def _keys(self, circuit: Circuit, kind: PduType) -> Keyring:
        if kind in _HELLOS:
            return circuit.settings.authentication
        return self._instance.settings.lsp_keys(kind.level)

    def _dispatch(self, circuit: Circuit, source: int, pdu: Pdu, raw: bytes) -> None:
        match pdu:
            case P2pHello():
                self._hello.receive_p2p(circuit, source, pdu)
            case LanHello():
                self._hello.receive_lan(circuit, source, pdu)
            case Lsp():
                self._flooding.receive_lsp(circuit, source, pdu, raw)
            case Csnp():
                self._flooding.receive_csnp(circuit, source, pdu)
            case Psnp():
                self._flooding.receive_psnp(circuit, source, pdu)

    # What the parts tell each other: AdjacencyWatcher

    def adjacency_changed(
        self, circuit: Circuit, adjacency: Adjacency, level: Level, reason: str
    ) -> None:
        """An adjacency came up in a level, or is up there no more."""
        if adjacency.up and adjacency.levels & level:
            self._flooding.adjacency_up(circuit, level)
            self._instance.timers.arm(self._instance.now + _SETTLING, _wake)
        else:
            self._flooding.adjacency_down(circuit, level)
        self._originator.circuit_changed(circuit, level)
        self._ted.links_changed(f"{circuit.name} {reason}", level, circuit.ifindex)

    def dis_changed(self, circuit: Circuit, level: Level, previous_lan_id: int) -> None:
        """The designated IS of a LAN is another one."""
        del previous_lan_id
        self._flooding.dis_changed(circuit, level)
        self._originator.circuit_changed(circuit, level)
        self._ted.links_changed(f"{circuit.name} designated IS", level, circuit.ifindex)

    def circuit_changed(self, circuit: Circuit) -> None:
        """Addresses, metric, state or capacity of a circuit, or what a neighbor says, differ."""
        self._external.stale = True
        if circuit.ifindex in self._instance.circuits:
            self._originator.bandwidth_changed(circuit)
            self._originator.circuit_changed(circuit)
        else:
            self._originator.circuit_removed(circuit)
        if not circuit.speaks:
            self._flooding.circuit_removed(circuit)
        # Which addresses links borrow is another question when a loopback changes.
        only = None if circuit.loopback else circuit.ifindex
        self._ted.links_changed(f"{circuit.name} changed", ifindex=only)

    # DatabaseWatcher

    def lsp_changed(self, level: Level, entry: StoredLsp, previous: StoredLsp | None) -> None:
        """The TED follows the database."""
        self._ted.lsp_changed(level, entry, previous)

    def lsp_removed(self, level: Level, entry: StoredLsp) -> None:
        """The header of a purged LSP was forgotten."""
        self._ted.lsp_removed(level, entry)
        if entry.own:
            self._originator.forget(level, entry.lsp_id)

    def own_lsp_received(self, level: Level, lsp_id: LspId, sequence_number: int) -> None:
        """Others have an LSP of ours that is newer than ours, or unknown to us."""
        del sequence_number
        self._originator.renew(level, lsp_id)

    def own_lsp_refresh(self, level: Level, lsp_id: LspId) -> None:
        """An LSP of ours nears the end of its life."""
        self._originator.renew(level, lsp_id)

    # Operation

    def _settle_attached(self) -> None:
        """Find out whether level 2 leads elsewhere, and act if that is another answer."""
        settings = self._instance.settings
        if not self._ted.areas_stale or settings.levels is not LevelSet.BOTH:
            return
        attached = self._ted.reaches_other_area()
        self._originator.set_attached(attached=attached)
        self._ted.follow_attached(follow=not attached)

    def _load_measured(self, event: LoadMeasured) -> None:
        circuit = self._instance.circuits.get(event.ifindex)
        if circuit is not None:
            circuit.utilized = event.utilized
            self._originator.bandwidth_changed(circuit)

    def _apply(self, settings: IsisSettings) -> None:
        """Take new settings; another system id or level makes another router."""
        instance = self._instance
        before = instance.settings
        if (settings.system_id, settings.levels) != (before.system_id, before.levels):
            self._begin_anew(settings)
            return
        instance.settings = settings
        self._hello.settings_changed()
        self._flooding.settings_changed(before)
        self._originator.everything_changed()
        self._ted.everything_changed("settings")
        self._leaking.everything_changed()
        self._external.everything_changed()

    def _begin_anew(self, settings: IsisSettings) -> None:
        old = self._instance
        circuits = [(circuit.link, circuit.settings) for circuit in old.ordered_circuits()]
        routes = self._external.known
        self._say_goodbye()
        for link, _ in circuits:
            self._circuits.removed(link.ifindex)
        leftovers = [*old.take_outputs(), *self._ted.withdraw_all("system id changed")]
        self._start(settings, old.rng)
        self._instance.now = old.now
        self._instance.counters = old.counters
        self._originator.begin()
        for output in leftovers:
            self._instance.emit(output)
        for link, circuit_settings in circuits:
            self._circuits.changed(link, circuit_settings)
        self._external.routes_changed(routes)

    def _shutdown(self) -> None:
        self._say_goodbye()
        self._instance.timers.clear()
        self._stopped = True

    def _say_goodbye(self) -> None:
        """Purge our LSPs while the neighbors still listen, then tell them that we are gone."""
        self._originator.purge_all()
        self._flooding.flush(force=True)
        self._hello.shutdown()


def _wake() -> None:
    """Nothing to do but to look again: an adjacency is no longer new."""
