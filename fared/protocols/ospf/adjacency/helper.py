"""The helper of neighbors that restart gracefully (RFC 3623 §3).

A neighbor announces its restart in a grace LSA. Until the grace period ends this router advertises
it as fully adjacent and forwards through it, whatever the state of the neighbor state machine,
which meanwhile runs a new database exchange. A change of the topology ends that, since the neighbor
forwards by the routes that it had before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

import msgspec

from fared.core.ids import dotted
from fared.core.timers import Timer
from fared.core.wire import DecodeError
from fared.protocols.ospf.adjacency.fsm import Adjacencies
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, Neighbor
from fared.protocols.ospf.lsdb import LsaEntry, Scope
from fared.protocols.ospf.neighbor import Helping, NeighborState
from fared.protocols.ospf.packet.body import decode_body, opaque_type
from fared.protocols.ospf.packet.grace import GraceLsa, RestartReason
from fared.protocols.ospf.packet.lsa import LsType
from fared.protocols.ospf.packet.opaque import OpaqueType
from fared.protocols.ospf.packet.packets import PacketType

_TOPOLOGY = frozenset(
    (
        LsType.ROUTER,
        LsType.NETWORK,
        LsType.SUMMARY_NETWORK,
        LsType.SUMMARY_ASBR,
        LsType.AS_EXTERNAL,
        LsType.NSSA_EXTERNAL,
    )
)
"""The LS types of RFC 3623 §3.1 (2) and §3.2 (3): 1 to 5 and 7."""
_KEPT = 16


class HelpEnded(msgspec.Struct, frozen=True):
    """How this router ceased to help a neighbor: ``completed``, or the reason."""

    interface: str
    router_id: int
    at: float
    result: str


class RestartHelper:
    """Enters and leaves helper mode, for any number of neighbors.

    ``changed`` is called when a neighbor that is not Full is no longer advertised, ``reelect`` when
    the designated router is to be calculated again.
    """

    def __init__(
        self,
        instance: Instance,
        adjacency: Adjacencies,
        changed: Callable[[Interface, str], None],
        reelect: Callable[[Interface], None],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._adjacency = adjacency
        self._changed = changed
        self._reelect = reelect
        self._helped: dict[Neighbor, Timer] = {}
        self.ended: deque[HelpEnded] = deque(maxlen=_KEPT)

    def lsa_changed(self, entry: LsaEntry) -> None:
        """Process a grace LSA, or a change of the topology."""
        key = entry.key
        if key.ls_type == LsType.OPAQUE_LINK:
            if opaque_type(key.link_state_id) == OpaqueType.GRACE:
                self._grace_received(entry)
        elif self._helped and key.ls_type in _TOPOLOGY:
            self._topology_changed(entry)

    def settings_changed(self) -> None:
        """End helping if it is no longer enabled."""
        if not self._instance.settings.graceful_restart.helper:
            self._end_all("disabled")

    def lost(self, neighbor: Neighbor, reason: str) -> None:
        """The interface of a helped neighbor went down, or another neighbor replaced it."""
        if neighbor.helping is not None:
            self._leave(neighbor, reason)

    def _grace_received(self, entry: LsaEntry) -> None:
        interface = self._instance.interfaces.get(entry.lsdb.ifindex or 0)
        if interface is None or entry.key.advertising_router == self._instance.router_id:
            return
        try:
            body = decode_body(entry.lsa)
        except DecodeError as error:
            source, kind = entry.key.advertising_router, PacketType.LS_UPDATE.label
            self._process.reject(
                "grace-lsa", source, interface=interface, kind=kind, what=str(error)
            )
            return
        assert isinstance(body, GraceLsa)
        neighbor = _restarting(interface, entry.key.advertising_router, body)
        if neighbor is None:
            return
        # RFC 3623 §3.2 (1): the grace LSA is flushed
        if entry.is_maxage(self._process.now):
            self._end(neighbor, "completed")
            return
        refused = self._refusal(neighbor, entry, body)
        if refused is None:
            self._enter(neighbor, entry, body)
        else:
            self._end(neighbor, refused)
            self._log("graceful-restart-not-helped", neighbor, reason=refused)

    def _refusal(self, neighbor: Neighbor, entry: LsaEntry, body: GraceLsa) -> str | None:
        """Why this router does not help (RFC 3623 §3.1), or None."""
        settings = self._instance.settings.graceful_restart
        # RFC 3623 §3.1 (4): local policy
        if not settings.helper or (settings.planned_only and body.reason not in _PLANNED):
            return "helper-disabled" if not settings.helper else "unplanned"
        # §3.1 (5): this router does not restart itself; (3): the grace period has not expired
        expired = entry.age(self._process.now) >= body.period
        if self._instance.restarting or expired:
            return "grace-period-expired" if expired else "restarting"
        # §3.1: a helper accepts another grace LSA, with a new grace period
        if neighbor.helping is not None:
            return None
        # §3.1 (1): full adjacency
        if neighbor.state is not NeighborState.FULL:
            return "not-adjacent"
        # §3.1 (2): no change of the database that the neighbor has not acknowledged
        if settings.strict_lsa_checking and self._unacknowledged(neighbor):
            return "topology-change"
        return None

    def _unacknowledged(self, neighbor: Neighbor) -> bool:
        return any(
            entry.unacknowledged & neighbor.bit and entry.key.ls_type in _TOPOLOGY
            for lsdb in self._instance.databases()
            for entry in lsdb.listed.values()
        )

    def _enter(self, neighbor: Neighbor, entry: LsaEntry, body: GraceLsa) -> None:
        """Help a neighbor to restart, or longer than so far (RFC 3623 §3.1).

        Not in RFC 3623: announced again and again, a restart lasts no longer than one, and a grace
        LSA is only a sign of life, as a hello is. Else anyone who can send one in the name of the
        neighbor, or the neighbor before it dies, would switch the detection of its failure off.
        """
        now, longest = self._process.now, self._instance.settings.graceful_restart.longest
        began = now if neighbor.helping is None else neighbor.helping.began
        until = min(now + body.period - entry.age(now), began + longest)
        if neighbor.helping is None:
            self._log(
                "graceful-restart-helper",
                neighbor,
                seconds=round(until - now),
                planned=body.reason in _PLANNED,
            )
        neighbor.helping = Helping(began, until, body.reason)
        self._process.timers.cancel(self._helped.get(neighbor))
        self._adjacency.restart_inactivity(neighbor)
        self._watch(neighbor, until)

    def _watch(self, neighbor: Neighbor, until: float) -> None:
        """Look at the neighbor when the grace period expires, or when it may have been silent."""
        due = min(until, neighbor.dead_at)
        self._helped[neighbor] = self._process.timers.arm(due, partial(self._look, neighbor, until))

    def _look(self, neighbor: Neighbor, until: float) -> None:
        now = self._process.now
        # §3.2 (2): the grace period expires
        if now >= until:
            self._end(neighbor, "grace-period-expired")
        elif now >= neighbor.dead_at:
            self._end(neighbor, "silent")
        else:
            self._watch(neighbor, until)

    def _topology_changed(self, entry: LsaEntry) -> None:
        """RFC 3623 §3.2 (3): an LSA with changed contents, which would be flooded to it."""
        if not self._instance.settings.graceful_restart.strict_lsa_checking:
            return
        for neighbor in list(self._helped):
            # Its own LSAs do not tell of changes that it does not know.
            if entry.key.advertising_router == neighbor.router_id:
                continue
            if self._floods_to(entry, neighbor):
                self._end(neighbor, "topology-change")

    def _floods_to(self, entry: LsaEntry, neighbor: Neighbor) -> bool:
        area = neighbor.interface.settings.area
        if entry.lsdb.scope is Scope.AREA:
            return entry.lsdb.area == area
        return not self._instance.areas[area].settings.stub

    def _end_all(self, result: str) -> None:
        for neighbor in list(self._helped):
            self._end(neighbor, result)

    def _end(self, neighbor: Neighbor, result: str) -> None:
        """Act by the state of the neighbor again (RFC 3623 §3.2)."""
        if neighbor.helping is None:
            return
        interface = neighbor.interface
        bidirectional = neighbor.bidirectional
        self._leave(neighbor, result)
        # Its next hello is read in full: it may declare another designated router.
        neighbor.last_hello = None
        # §3.2: router LSA and network LSA, now by the state of the neighbor
        if not neighbor.adjacent:
            self._changed(interface, f"graceful restart: {result}")
        # §3.2: the designated router is calculated again
        if neighbor.bidirectional != bidirectional or interface.broadcast:
            self._reelect(interface)
        self._adjacency.expire(neighbor)

    def _leave(self, neighbor: Neighbor, result: str) -> None:
        neighbor.helping = None
        self._process.timers.cancel(self._helped.pop(neighbor, None))
        name = neighbor.interface.name
        self.ended.append(HelpEnded(name, neighbor.router_id, self._process.now, result))
        self._process.counters.lsdb[f"helped-{result}"] += 1
        self._log("graceful-restart-helper-ended", neighbor, result=result)

    def _log(self, event: str, neighbor: Neighbor, **fields: object) -> None:
        name, router_id = neighbor.interface.name, dotted(neighbor.router_id)
        self._process.log("info", event, interface=name, neighbor=router_id, **fields)


_PLANNED = frozenset(reason for reason in RestartReason if reason.planned)


def _restarting(interface: Interface, router_id: int, body: GraceLsa) -> Neighbor | None:
    """The neighbor that a grace LSA is about (RFC 3623 §3.1 (1)).

    On broadcast networks by the interface address in it, elsewhere by its advertising router.
    """
    if interface.broadcast and body.address is not None:
        neighbor = interface.neighbors.get(body.address)
        return neighbor if neighbor and neighbor.router_id == router_id else None
    matching = (n for n in interface.neighbors.values() if n.router_id == router_id)
    return next(matching, None)
