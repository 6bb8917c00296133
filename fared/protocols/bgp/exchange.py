"""What sessions bring into the tables: neighbors that come and go, and what they announce."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, NodeId
from fared.protocols.bgp.announcing import Announcing
from fared.protocols.bgp.instance import BgpInstance, Told
from fared.protocols.bgp.keeping import RouteKeeper
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.packet.codec import encode_message
from fared.protocols.bgp.packet.messages import MessageType, RouteRefresh, Update
from fared.protocols.bgp.packet.nlri import AFIS, FAMILIES, UNICAST
from fared.protocols.bgp.packet.notification import REASONS, Fault
from fared.protocols.bgp.policy import accepted, permitted_of
from fared.protocols.bgp.reach import link_changed
from fared.protocols.bgp.rib.tables import BgpRib
from fared.protocols.bgp.session.events import (
    Agreed,
    MessageRejected,
    RefreshRequested,
    RoomToSend,
    SessionDown,
    SessionEstablished,
    UpdateReceived,
)
from fared.protocols.bgp.session.fsm import BgpState
from fared.protocols.bgp.session.session import BgpSession
from fared.protocols.bgp.settings import BgpNeighborSettings
from fared.protocols.igp.events import AdjacencyChanged


class BgpExchange:
    """Learns from neighbors. ``watch`` is called when a session came up or ended."""

    def __init__(self, instance: BgpInstance, announcing: Announcing) -> None:
        self._instance, self._announcing = instance, announcing
        self._process = instance.process
        self._keeper = RouteKeeper(instance)
        self.watch: Callable[[BgpSpeaker], None] = lambda _: None

    # -- sessions -----------------------------------------------------------------------------

    def hear(self) -> None:
        """Process what sessions have told."""
        told = self._instance.surroundings.told
        while told:
            one = told.popleft()
            neighbor = self._instance.neighbors.get(one.peer)
            if neighbor is not None:
                self._announcing.touch(one.peer)
                self._hear(neighbor, one)

    def _hear(self, neighbor: BgpSpeaker, told: Told) -> None:
        match told:
            case UpdateReceived(_, update) if neighbor.agreed is not None:
                self._update(neighbor, update)
            case SessionEstablished(_, agreed):
                self._established(neighbor, agreed)
            case SessionDown(was_up=True):
                self._down(neighbor, told)
            case SessionDown():
                self._failed(neighbor, told.reason)
            case RefreshRequested(_, refresh):
                self._refresh(neighbor, refresh)
            case MessageRejected(_, kind, code):
                reason = REASONS[code]
                self._process.counters.errors[reason] += 1
                neighbor.counters.rejected[kind, reason] += 1
            case RoomToSend():
                neighbor.flush()
            case _:
                pass

    def _established(self, neighbor: BgpSpeaker, agreed: Agreed) -> None:
        instance, place = self._instance, neighbor.place
        if neighbor.agreed is not None:
            # a new connection took the place of the old one (RFC 4724 §4.2)
            gone = SessionDown(neighbor.number, "it has restarted", was_up=True, keeps_routes=True)
            self._down(neighbor, gone)
        if place is None:
            return
        neighbor.agreed, neighbor.since = agreed, self._process.now
        neighbor.peer = neighbor.peer_of(agreed)
        self._keeper.resume(neighbor, agreed)
        wide = place.family == FAMILY_IPV6 and agreed.extended_next_hop
        same = (FAMILY_IPV4, FAMILY_IPV6) if wide else (place.family,)
        neighbor.gateways = dict.fromkeys(same, (place.family, place.remote))
        used = [family for family in agreed.families if family in instance.ribs]
        without = [one for one in used if not self._announcing.add(neighbor, one)]
        neighbor.unended = {family for family in used if family not in without}
        neighbor.untold = set(neighbor.unended)
        self._changed(neighbor, BgpState.OPEN_CONFIRM, BgpState.ESTABLISHED, "")
        self._say_unused(neighbor, without)
        self.watch(neighbor)

    def _say_unused(self, neighbor: BgpSpeaker, families: list[int]) -> None:
        """Say what a session does not carry, though both sides would have it."""
        for family in families:
            why = f"the link has no IPv{family} address to be a next hop"
            self._process.log("warning", "bgp-family-unused", neighbor=neighbor.name, reason=why)
        ways = (("import", neighbor.imports), ("export", neighbor.exports))
        missing = [way for way, given in ways if not given]
        if missing:
            self._process.log(
                "warning",
                "bgp-policy-missing",
                neighbor=neighbor.name,
                missing=" and ".join(missing),
                effect="no routes that way (RFC 8212)",
            )

    def _down(self, neighbor: BgpSpeaker, told: SessionDown) -> None:
        agreed = neighbor.agreed
        if agreed is None:
            return
        neighbor.flaps += 1
        self._changed(neighbor, BgpState.ESTABLISHED, BgpState.IDLE, told.reason)
        if told.keeps_routes:
            self._keeper.keep(neighbor, told.reason)
        neighbor.agreed = None
        for family in agreed.families:
            if family not in neighbor.stale:
                self._keeper.lose(neighbor, family)
        self._announcing.end(neighbor)
        self.watch(neighbor)

    def _failed(self, neighbor: BgpSpeaker, reason: str) -> None:
        if self._process.may_log(neighbor.number, reason):
            name = neighbor.name
            self._process.log("info", "bgp-session-failed", neighbor=name, reason=reason)

    def drop(self, neighbor: BgpSpeaker) -> None:
        """Forget all that a neighbor has told, at once."""
        for family in self._instance.ribs:
            self._keeper.lose(neighbor, family)

    def _refresh(self, neighbor: BgpSpeaker, refresh: RouteRefresh) -> None:
        """Tell a neighbor everything again (RFC 2918 §4)."""
        rib = self._instance.ribs.get(FAMILIES.get(refresh.afi, 0))
        if rib is None or refresh.safi != UNICAST or refresh.subtype:
            return
        out = rib.outs.get(neighbor.number)
        if out is not None:
            out.refresh(rib.table)

    # -- what neighbors announce ----------------------------------------------------------------

    def _update(self, neighbor: BgpSpeaker, update: Update) -> None:
        instance = self._instance
        neighbor.received += 1
        self._process.counters.lsdb["updates-received"] += 1
        found = accepted(update, neighbor)
        if update.findings:  # RFC 7606: the session goes on
            what = "; ".join(map(str, update.findings))
            self._reject(neighbor, "attributes", what)
        if found.refused:
            hops = ", ".join(str(group.next_hop) for group in update.routes)
            self._reject(neighbor, "next-hop", f"next hop {hops}", again=bool(update.findings))
        neighbor.rejected += bool(update.findings or found.refused)
        for family, gateway in found.gateways.items():
            if family not in neighbor.gateways:
                neighbor.gateways[family] = gateway
                link_changed(instance, neighbor, family)
        for rib in instance.ribs.values():
            if neighbor.number in rib.outs:
                rib.update(neighbor.number, found.update)
        if found.update.routes or found.update.withdrawn:
            instance.changed(f"UPDATE of {neighbor.name}")
        if update.end_of_rib is not None:
            neighbor.unended.discard(update.end_of_rib)
            self._keeper.renewed(neighbor, update.end_of_rib)
            self.watch(neighbor)
        self._check_maximum(neighbor)

    def _reject(self, neighbor: BgpSpeaker, reason: str, what: str, *, again: bool = False) -> None:
        """Count an UPDATE of which something is not accepted; ``again``: for another reason."""
        if not again:
            neighbor.counters.rejected[MessageType.UPDATE.label, reason] += 1
        self._process.reject(reason, neighbor.number, what=what)

    def _check_maximum(self, neighbor: BgpSpeaker) -> None:
        most, wait = neighbor.settings.maximum_prefixes, neighbor.settings.restart_after
        session = neighbor.session
        if most is None or session is None or neighbor.held is not None:
            return
        if self.count(neighbor) <= most:
            return
        name, why = neighbor.name, f"it has announced more than {most} prefixes"
        self._process.log("error", "bgp-maximum-prefixes", neighbor=name, limit=most, again=wait)
        session.end(Fault.MAXIMUM_NUMBER_OF_PREFIXES_REACHED, why)
        session.stop()
        at = self._process.now + wait
        neighbor.held = self._process.timers.arm(at, partial(self.release, neighbor))
        self.watch(neighbor)

    def release(self, neighbor: BgpSpeaker) -> None:
        """Try again with a neighbor that had announced too many prefixes."""
        self._process.timers.cancel(neighbor.held)
        neighbor.held = None
        if neighbor.session is not None:
            neighbor.session.start()
        self.watch(neighbor)
        self._instance.wake()

    def count(self, neighbor: BgpSpeaker) -> int:
        """Return how many prefixes of a neighbor are in the tables."""
        number = neighbor.number
        ribs = [rib for rib in self._instance.ribs.values() if rib.knows(number)]
        return sum([rib.table.count(number) for rib in ribs])

    # -- settings -------------------------------------------------------------------------------

    def settings_changed(self, neighbor: BgpSpeaker, before: BgpNeighborSettings) -> None:
        """Apply other settings of a neighbor, or addresses of its link; the session goes on."""
        agreed, session, now = neighbor.agreed, neighbor.session, neighbor.settings
        if neighbor.held is not None:
            self.release(neighbor)
        if agreed is None or session is None:
            return
        self._announcing.export_changed(neighbor)
        self._addresses_changed(neighbor, agreed, session)
        old, new = before.path_bandwidth, now.path_bandwidth
        heard = (old.receive, old.missing) != (new.receive, new.missing)
        imports = (before.imports, before.import_filters) != (now.imports, now.import_filters)
        if heard or (imports and not agreed.refresh):
            session.end(Fault.OTHER_CONFIGURATION_CHANGE, "its settings are others")
        elif imports:
            self._import_again(neighbor, agreed)
        self._check_maximum(neighbor)

    def _addresses_changed(self, neighbor: BgpSpeaker, agreed: Agreed, session: BgpSession) -> None:
        """Begin with families that the link has an address of now, and end with others."""
        for family in agreed.families:
            rib = self._instance.ribs.get(family)
            if rib is None:
                continue
            if neighbor.number in rib.outs:
                if neighbor.next_hop(family) is None:
                    self._end_family(neighbor, rib)
            elif agreed.refresh and self._announcing.add(neighbor, family):
                neighbor.untold.add(family)
                self._ask(neighbor, family)
            elif neighbor.next_hop(family) is not None:
                session.end(Fault.OTHER_CONFIGURATION_CHANGE, f"there is an IPv{family} address")

    def _end_family(self, neighbor: BgpSpeaker, rib: BgpRib) -> None:
        """The link has no address any more to be a next hop, nor to send to one."""
        neighbor.withdraw_all(rib.outs[neighbor.number], rib.table)
        self._keeper.lose(neighbor, rib.family)
        neighbor.gateways.pop(rib.family, None)
        neighbor.unended.discard(rib.family)
        neighbor.untold.discard(rib.family)
        self._say_unused(neighbor, [rib.family])

    def _import_again(self, neighbor: BgpSpeaker, agreed: Agreed) -> None:
        """Withdraw what is not permitted any more, and ask for what was not (RFC 2918 §4)."""
        for family in agreed.families:
            rib = self._instance.ribs.get(family)
            if rib is None or neighbor.number not in rib.outs:
                continue
            known = tuple(rib.table.announced(neighbor.number))
            lost = set(known).difference(permitted_of(known, neighbor))
            rib.table.withdraw(neighbor.number, lost)
            self._ask(neighbor, family)
        self._instance.changed(f"policy of {neighbor.name}")
        self._instance.wake()

    def renew(self, neighbor: BgpSpeaker) -> None:
        """Ask a neighbor for all routes, and tell it all (RFC 2918)."""
        for family, rib in self._instance.ribs.items():
            out = rib.outs.get(neighbor.number)
            if out is not None:
                out.refresh(rib.table)
                if neighbor.agreed is not None and neighbor.agreed.refresh:
                    self._ask(neighbor, family)
        self._instance.wake()

    def _ask(self, neighbor: BgpSpeaker, family: int) -> None:
        """Ask a neighbor for all routes of a family."""
        assert neighbor.session is not None
        for message in encode_message(RouteRefresh(AFIS[family], UNICAST)):
            neighbor.session.send(message)

    # -- reports --------------------------------------------------------------------------------

    def _changed(self, neighbor: BgpSpeaker, before: BgpState, after: BgpState, why: str) -> None:
        self._process.counters.transitions[before.label, after.label] += 1
        place, agreed = neighbor.place, neighbor.agreed
        assert place is not None
        assert agreed is not None
        link, node = place.link, NodeId(agreed.identifier)
        self._process.emit(
            AdjacencyChanged(
                link.ifindex, link.name, node, before.label, after.label, why, gained_or_lost=True
            )
        )
