"""Circuits as links and settings change: which ones there are, and which of them speak.

What a change of settings does follows FRR: another network type or passive mode begins anew; of
levels only those switched off lose their adjacencies; metric, intervals, priority, padding and
addresses leave adjacencies alone. Another key does, too: neighbors that do not accept it let the
adjacency expire, so that keys can roll.
"""

from __future__ import annotations

from dataclasses import replace

from fared.core.links import Link
from fared.isis.adjacency import AdjacencyWatcher
from fared.isis.checks import carries_lsps
from fared.isis.circuit import Circuit
from fared.isis.events import CloseCircuit, OpenCircuit
from fared.isis.hello import HelloProtocol
from fared.isis.instance import Instance
from fared.isis.settings import CircuitSettings

MAX_CIRCUIT_ID = 255


class CircuitManager:
    """Creates, moves and removes circuits."""

    def __init__(self, instance: Instance, hello: HelloProtocol, watcher: AdjacencyWatcher) -> None:
        self._instance = instance
        self._hello = hello
        self._watcher = watcher

    def changed(self, link: Link, settings: CircuitSettings | None) -> None:
        """A link appeared or changed, or IS-IS was switched on or off on it."""
        circuit = self._instance.circuits.get(link.ifindex)
        if circuit is not None and (settings is None or _begins_anew(circuit, link, settings)):
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
        """The kernel has no such link any more."""
        circuit = self._instance.circuits.get(ifindex)
        if circuit is not None:
            circuit.link = replace(circuit.link, up=False)
            self._drop(circuit, "link removed")

    def _add(self, link: Link, settings: CircuitSettings) -> None:
        circuit = Circuit(link, settings, 0)
        circuit_id = self._circuit_id(circuit)
        if circuit_id is None:
            self._instance.log("error", "isis-no-circuit-id", interface=link.name)
            return
        circuit.circuit_id = circuit_id
        self._instance.circuits[link.ifindex] = circuit
        self._follow(circuit)

    def _circuit_id(self, circuit: Circuit) -> int | None:
        """Choose the one-byte id, by the ifindex so that it survives a restart where it can.

        It names pseudonodes: so LANs need ids of their own. On point-to-point circuits the
        extended one of RFC 5303 counts, and this may be any.
        """
        wish = (circuit.ifindex - 1) % MAX_CIRCUIT_ID + 1
        if not circuit.broadcast:
            return wish
        taken = {other.circuit_id for other in self._instance.circuits.values() if other.broadcast}
        free = [number for number in range(1, MAX_CIRCUIT_ID + 1) if number not in taken]
        return min(free, key=lambda number: (number - wish) % MAX_CIRCUIT_ID, default=None)

    def _follow(self, circuit: Circuit) -> None:
        """Bring a circuit in line with its link and settings."""
        spoke = circuit.speaks
        if spoke and not circuit.link.up:
            self._silence(circuit, "link down")
        circuit.up = circuit.link.up
        if circuit.speaks and not carries_lsps(self._instance, circuit):
            self._instance.log(
                "error",
                "isis-mtu-too-small",
                interface=circuit.name,
                mtu=circuit.link.mtu,
                lsp_mtu=self._instance.settings.lsp_mtu,
            )
        if circuit.speaks and spoke:
            self._hello.circuit_changed(circuit)
        elif circuit.speaks:
            self._instance.emit(OpenCircuit(circuit.ifindex))
            self._hello.circuit_up(circuit)
        self._watcher.circuit_changed(circuit)

    def _silence(self, circuit: Circuit, reason: str) -> None:
        self._hello.circuit_down(circuit, reason)
        self._instance.emit(CloseCircuit(circuit.ifindex))

    def _drop(self, circuit: Circuit, reason: str) -> None:
        """Stop IS-IS on a link; neighbors are told if it still carries frames."""
        if circuit.speaks:
            self._silence(circuit, reason)
        circuit.up = False
        self._instance.timers.cancel(circuit.announce_timer)
        del self._instance.circuits[circuit.ifindex]
        self._watcher.circuit_changed(circuit)


def _begins_anew(circuit: Circuit, link: Link, settings: CircuitSettings) -> bool:
    """Whether the circuit must be another one."""
    before = circuit.settings
    return (before.kind, before.passive, circuit.link.loopback) != (
        settings.kind,
        settings.passive,
        link.loopback,
    )
