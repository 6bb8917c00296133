"""Circuits as links and settings change: which exist, and which are active.

Changed settings have the same effect as in FRR: another network type or passive mode creates a new
circuit; of the levels only those disabled lose their adjacencies; metric, intervals, priority,
padding and addresses leave adjacencies alone. So does a changed key: neighbors that do not accept
it let the adjacency expire, so that keys can roll.
"""

from __future__ import annotations

from msgspec.structs import replace

from fared.core.links import Link
from fared.protocols.igp.events import CloseInterface, OpenInterface
from fared.protocols.isis.adjacency.checks import carries_lsps
from fared.protocols.isis.adjacency.fsm import AdjacencyWatcher, all_adjacencies
from fared.protocols.isis.adjacency.hello import HelloProtocol
from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.settings import CircuitSettings

MAX_CIRCUIT_ID = 255


class CircuitManager:
    """Creates, changes and removes circuits."""

    def __init__(self, instance: Instance, hello: HelloProtocol, watcher: AdjacencyWatcher) -> None:
        self._instance = instance
        self._process = instance.process
        self._hello = hello
        self._watcher = watcher
        self._readdressed = False

    def changed(self, link: Link, settings: CircuitSettings | None) -> None:
        """A link appeared or changed, or IS-IS was enabled or disabled on it."""
        self._readdressed |= self._instance.own_addresses.put(link.ifindex, link.ipv4())
        circuit = self._instance.circuits.get(link.ifindex)
        if circuit is not None and (settings is None or _needs_restart(circuit, link, settings)):
            circuit.link = link
            self._drop(circuit, "switched off" if settings is None else "reconfigured")
            circuit = None
        if settings is None:
            return
        if circuit is None:
            self._add(link, settings)
        elif (circuit.link, circuit.settings) != (link, settings):
            circuit.link, circuit.settings = link, settings
            self._follow(circuit)

    def removed(self, ifindex: int) -> None:
        """The kernel removed a link."""
        self._readdressed |= self._instance.own_addresses.put(ifindex, ())
        circuit = self._instance.circuits.get(ifindex)
        if circuit is not None:
            circuit.link = replace(circuit.link, up=False)
            self._drop(circuit, "link removed")

    def settle(self) -> None:
        """Reconsider which neighbors packets can be sent to, if our addresses changed."""
        if not self._readdressed:
            return
        self._readdressed = False
        for circuit in self._instance.circuits.values():
            if any(a.up for a in all_adjacencies(circuit)):
                self._watcher.circuit_changed(circuit)

    def _add(self, link: Link, settings: CircuitSettings) -> None:
        circuit = Circuit(link, settings, 0)
        circuit_id = self._circuit_id(circuit)
        if circuit_id is None:
            self._process.log("error", "isis-no-circuit-id", interface=link.name)
            return
        circuit.circuit_id = circuit_id
        self._instance.add_circuit(circuit)
        self._follow(circuit)

    def _circuit_id(self, circuit: Circuit) -> int | None:
        """Choose the one-byte id, by the ifindex, so that it survives a restart if possible.

        It names pseudonodes, so LANs need distinct ids. On point-to-point circuits the extended one
        of RFC 5303 is used instead, and this one need not be distinct.
        """
        wish = (circuit.ifindex - 1) % MAX_CIRCUIT_ID + 1
        if not circuit.broadcast:
            return wish
        taken = {other.circuit_id for other in self._instance.circuits.values() if other.broadcast}
        free = [number for number in range(1, MAX_CIRCUIT_ID + 1) if number not in taken]
        return min(free, key=lambda number: (number - wish) % MAX_CIRCUIT_ID, default=None)

    def _follow(self, circuit: Circuit) -> None:
        """Apply link and settings to a circuit."""
        spoke = circuit.is_active
        if spoke and not circuit.link.up:
            self._silence(circuit, "link down")
        circuit.up = circuit.link.up
        if circuit.is_active and not carries_lsps(self._instance, circuit):
            self._process.log(
                "error",
                "isis-mtu-too-small",
                interface=circuit.name,
                mtu=circuit.link.mtu,
                lsp_mtu=self._instance.settings.lsp_mtu,
            )
        if circuit.is_active and spoke:
            self._hello.circuit_changed(circuit)
        elif circuit.is_active:
            self._process.emit(OpenInterface(circuit.ifindex))
            self._hello.circuit_up(circuit)
        if circuit.loopback:
            self._hello.loopback_changed()
        self._watcher.circuit_changed(circuit)

    def _silence(self, circuit: Circuit, reason: str) -> None:
        self._hello.circuit_down(circuit, reason)
        self._process.emit(CloseInterface(circuit.ifindex))

    def _drop(self, circuit: Circuit, reason: str) -> None:
        """Stop IS-IS on a link, with final hellos if it still carries frames."""
        if circuit.is_active:
            self._silence(circuit, reason)
        circuit.up = False
        self._instance.remove_circuit(circuit.ifindex)
        if circuit.loopback:
            self._hello.loopback_changed()
        self._watcher.circuit_changed(circuit)


def _needs_restart(circuit: Circuit, link: Link, settings: CircuitSettings) -> bool:
    """Whether the change requires a new circuit."""
    before = circuit.settings
    return (before.kind, before.passive, circuit.link.loopback) != (
        settings.kind,
        settings.passive,
        link.loopback,
    )
