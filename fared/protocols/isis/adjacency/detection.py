"""BFD with IS-IS neighbors: a session that fails ends the adjacency at once (RFC 5882 §10.1).

There is a session for each address family of an adjacency. In strict mode, which both systems
announce by the BFD-enabled TLV (RFC 6213), an adjacency stays in state Initializing until the
sessions of a topology are up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.core.bfd import BfdChanged, BfdStatus, BfdWanted, is_strict
from fared.core.ids import ADDRESS_BITS, FAMILY_IPV4, FAMILY_IPV6
from fared.protocols.igp.bfd_sessions import BfdSessions
from fared.protocols.isis.addresses import hello_addresses
from fared.protocols.isis.adjacency.checks import own_topologies
from fared.protocols.isis.circuit import Adjacency, AdjacencyState, Circuit
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.tlvs import MT_IPV4, NLPIDS, TOPOLOGIES, BfdEnabled
from fared.protocols.isis.settings import IsisSettings


class FailureDetection:
    """Asks for the sessions of adjacencies, and reports those whose session failed.

    ``failed`` ends an adjacency; ``useable`` is called when one needs to wait no longer.
    """

    def __init__(
        self,
        instance: Instance,
        failed: Callable[[Adjacency, str], None],
        useable: Callable[[Adjacency], None],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._failed, self._useable = failed, useable
        self._sessions = BfdSessions(instance.process.emit)

    def follow(self, adjacency: Adjacency) -> None:
        """Ask for sessions once the adjacency is up, in strict mode while it initializes."""
        settings = adjacency.circuit.settings.bfd
        if settings is None and not adjacency.bfd:
            return
        initializes = adjacency.state is AdjacencyState.INITIALIZING
        wanted = adjacency.up or (initializes and self._required(adjacency))
        pairs = self._pairs(adjacency) if wanted and settings is not None else []
        circuit = adjacency.circuit
        self._sessions.use(
            adjacency,
            tuple(
                [
                    BfdWanted(
                        circuit.ifindex,
                        circuit.name,
                        local,
                        remote,
                        settings.session,
                        settings.strict,
                    )
                    for local, remote in pairs
                    if settings is not None
                ]
            ),
        )
        adjacency.bfd = self._sessions.status_of(adjacency)

    def waits(self, adjacency: Adjacency) -> bool:
        """Whether an adjacency must not come up yet (RFC 6213 §3.2)."""
        if adjacency.up or not self._required(adjacency):
            return False
        return not adjacency.bfd_held

    def changed(self, event: BfdChanged) -> None:
        """Process the status of a session: its failure is that of the adjacency."""
        for adjacency in self._sessions.take(event):
            assert isinstance(adjacency, Adjacency)
            adjacency.bfd = self._sessions.status_of(adjacency)
            if event.status is BfdStatus.DOWN:
                adjacency.bfd_held = False
                # RFC 5882 §4.3: the end of a session with a neighbor that restarts is no failure,
                # unless its BFD outlives its control plane
                restarts = adjacency.restarting or adjacency.prepared
                if adjacency.up and (event.independent or not restarts):
                    self._failed(adjacency, "BFD session down")
            elif self._required(adjacency) and not adjacency.up and self._sessions_up(adjacency):
                self._hold(adjacency)

    def _required(self, adjacency: Adjacency) -> bool:
        """ISIS_BFD_REQUIRED (RFC 6213 §3.1): both announce BFD for a common topology."""
        settings = adjacency.circuit.settings.bfd
        if settings is None or not settings.strict:
            return False
        return bool(self._common(adjacency))

    def _common(self, adjacency: Adjacency) -> set[tuple[int, int]]:
        return set(adjacency.bfd_enabled) & set(_entries(self._instance.settings))

    def _sessions_up(self, adjacency: Adjacency) -> bool:
        """ISIS_NEIGHBOR_USEABLE (§3.1): the sessions of all protocols of some topology are up."""
        common = self._common(adjacency)
        up = {
            NLPIDS[FAMILY_IPV4 if len(remote) == 4 else FAMILY_IPV6]
            for remote, status in adjacency.bfd.items()
            if status is not BfdStatus.DOWN
        }
        topologies = {topology for topology, _ in common}
        return any(
            {nlpid for found, nlpid in common if found == topology} <= up for topology in topologies
        )

    def _hold(self, adjacency: Adjacency) -> None:
        """Let the adjacency come up once its sessions have been up for the hold time."""
        settings = adjacency.circuit.settings.bfd
        assert settings is not None
        due = self._process.now + settings.hold_time
        if settings.hold_time:
            self._process.timers.arm(due, partial(self._held, adjacency, due))
            adjacency.bfd_hold_until = due
        else:
            self._release(adjacency)

    def _held(self, adjacency: Adjacency, due: float) -> None:
        if adjacency.bfd_hold_until == due and self._sessions_up(adjacency):
            self._release(adjacency)

    def _release(self, adjacency: Adjacency) -> None:
        adjacency.bfd_held = True
        if adjacency.state is AdjacencyState.INITIALIZING:
            self._useable(adjacency)

    def _pairs(self, adjacency: Adjacency) -> list[tuple[bytes, bytes]]:
        """Return local and remote address of each family that both systems route."""
        found = []
        remotes = {FAMILY_IPV4: adjacency.ipv4, FAMILY_IPV6: adjacency.ipv6}
        for family in self._instance.settings.families:
            local = hello_addresses(self._instance, adjacency.circuit, family)[:1]
            remote = remotes[family][:1]
            if local and remote:
                size = ADDRESS_BITS[family] // 8
                found.append((local[0].to_bytes(size, "big"), remote[0].to_bytes(size, "big")))
        return found


def bfd_tlv(instance: Instance, circuit: Circuit) -> tuple[BfdEnabled, ...]:
    """The BFD-enabled TLV of a hello in strict mode (RFC 6213 §2)."""
    if not is_strict(circuit.settings.bfd):
        return ()
    return (BfdEnabled(_entries(instance.settings)),)


def _entries(settings: IsisSettings) -> tuple[tuple[int, int], ...]:
    """Topology and NLPID of each family (RFC 6213 §2)."""
    topologies = own_topologies(settings)
    return tuple(
        [
            (TOPOLOGIES[family] if TOPOLOGIES[family] in topologies else MT_IPV4, NLPIDS[family])
            for family in settings.families
        ]
    )
