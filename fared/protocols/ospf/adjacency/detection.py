"""BFD with OSPF neighbors: a session that fails ends the adjacency at once (RFC 5882 §10.2).

In strict mode (RFC 9355), which both routers announce in the link-local block of their hellos, a
neighbor stays in Init, and is not listed in hellos, until its session is up.
"""

from __future__ import annotations

from functools import partial

from fared.core.bfd import BfdChanged, BfdStatus, BfdWanted, is_strict
from fared.core.wire import DecodeError
from fared.protocols.igp.bfd_sessions import BfdSessions
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, Neighbor
from fared.protocols.ospf.neighbor import NeighborEvent, NeighborState
from fared.protocols.ospf.packet.lls import B_BIT
from fared.protocols.ospf.packet.packets import Hello, Options
from fared.protocols.ospf.processing.authenticate import link_local_options


class FailureDetection:
    """Asks for the sessions of neighbors, and ends adjacencies whose session failed."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._process = instance.process
        self._sessions = BfdSessions(instance.process.emit)

    def follow(self, neighbor: Neighbor) -> None:
        """Ask for a session from state 2-Way on, in strict mode from Init on; end it below."""
        settings = neighbor.interface.settings.bfd
        # RFC 9355 §4
        least = NeighborState.INIT if neighbor.awaits_bfd else NeighborState.TWO_WAY
        if settings is None or neighbor.state < least:
            self._sessions.use(neighbor, ())
            neighbor.bfd = None
            return
        interface = neighbor.interface
        local = interface.address.to_bytes(4, "big")
        remote = neighbor.address.to_bytes(4, "big")
        self._sessions.use(
            neighbor,
            (
                BfdWanted(
                    interface.ifindex,
                    interface.name,
                    local,
                    remote,
                    settings.session,
                    settings.strict,
                ),
            ),
        )
        neighbor.bfd = neighbor.bfd or BfdStatus.DOWN

    def settings_changed(self, interface: Interface) -> None:
        """Apply changed settings of an interface to its neighbors."""
        for neighbor in list(interface.neighbors.values()):
            if neighbor.awaits_bfd and not is_strict(interface.settings.bfd):
                self._admit(neighbor)
            self.follow(neighbor)

    def admits(self, neighbor: Neighbor, hello: Hello, payload: bytes) -> bool:
        """Process the block of a hello; False: it is malformed, and counts as none."""
        # RFC 9355 §4: the B-bit counts in Init only
        if neighbor.state is not NeighborState.INIT or not is_strict(
            neighbor.interface.settings.bfd
        ):
            return True
        flags, sound = 0, True
        if hello.options & Options.L:
            try:
                flags = link_local_options(self._instance, neighbor.interface, payload)
            except DecodeError:
                sound = False
        if not flags & B_BIT:
            neighbor.awaits_bfd = False
        elif neighbor.bfd is None:
            neighbor.awaits_bfd = True
            self.follow(neighbor)
        return sound

    def changed(self, event: BfdChanged) -> None:
        """Process the status of a session: its failure is that of the neighbor."""
        for neighbor in self._sessions.take(event):
            assert isinstance(neighbor, Neighbor)
            neighbor.bfd = event.status
            # RFC 5882 §4.2: AdminDown of the neighbor is no failure; §4.3: nor is the end of a
            # session with a neighbor that restarts gracefully, if its control plane sends them
            if event.status is BfdStatus.DOWN:
                restarts = neighbor.helping is not None
                if event.independent if restarts else neighbor.state >= NeighborState.TWO_WAY:
                    neighbor.fire(NeighborEvent.BFD_DOWN)
            elif neighbor.awaits_bfd:
                self._hold(neighbor)

    def _hold(self, neighbor: Neighbor) -> None:
        """Let the neighbor pass once its session has been up for the hold time."""
        settings = neighbor.interface.settings.bfd
        hold = 0.0 if settings is None else settings.hold_time
        if hold:
            since = self._process.now
            neighbor.bfd_since = since
            self._process.timers.arm(since + hold, partial(self._held, neighbor, since))
        else:
            self._admit(neighbor)

    def _held(self, neighbor: Neighbor, since: float) -> None:
        up = neighbor.bfd is not None and neighbor.bfd is not BfdStatus.DOWN
        if up and neighbor.awaits_bfd and neighbor.bfd_since == since:
            self._admit(neighbor)

    def _admit(self, neighbor: Neighbor) -> None:
        """End the wait of a neighbor: list it in hellos, and become 2-Way if it lists us."""
        neighbor.awaits_bfd = False
        neighbor.last_hello = None
        neighbor.interface.tx.hello()
        if neighbor.lists_us and neighbor.state is NeighborState.INIT:
            neighbor.fire(NeighborEvent.TWO_WAY_RECEIVED)
