"""From the link state database to the TED: one ``NodeBlock`` for each router.

A router with 512 links floods 512 TE LSAs, which arrive one at a time. So the values that routes
need are read once and stored, and a TE LSA that matches one row patches a copy of the arrays. All
rows are matched again only after a change of the router LSA, or of links matched by order.
``blocks`` makes the arrays.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fared.core.ids import AreaId, NodeId, dotted
from fared.core.links import needs_onlink
from fared.core.wire import DecodeError
from fared.paths.ted.compare import same_block
from fared.paths.ted.events import (
    LocalLinksChanged,
    PrefixesUpdated,
    TedUpdated,
)
from fared.paths.ted.model import LocalLink, NodeBlock
from fared.protocols.igp.events import InformationUpdated
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface
from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.origination import contents
from fared.protocols.ospf.packet.bodies import B_BIT, E_BIT, V_BIT, NetworkLsa, RouterLsa
from fared.protocols.ospf.packet.body import LsaBody, decode_body, is_te_lsa, opaque_type
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, LsType, describes_router
from fared.protocols.ospf.packet.opaque import OpaqueType, TeLink
from fared.protocols.ospf.packet.router_info import RouterInformation
from fared.protocols.ospf.packet.te_facts import TeFacts, TeReader, facts_of
from fared.protocols.ospf.ted.blocks import RouterFacts, build, fits, patch
from fared.protocols.ospf.ted.lost_links import shrunk, withdraw
from fared.protocols.ospf.ted.networks import NetworkTable
from fared.protocols.ospf.ted.own_networks import OwnNetworks
from fared.protocols.ospf.ted.reachability import Reachability
from fared.protocols.ospf.ted.used_prefixes import UsedPrefixes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fared.protocols.ospf.ted.bier import BierTable

_WORD = 0xFFFFFFFF
_OPAQUE_ID = 0x00FFFFFF
_BEYOND: dict[int, str] = {
    LsType.SUMMARY_NETWORK: "summary-lsa",
    LsType.SUMMARY_ASBR: "asbr-summary-lsa",
    LsType.AS_EXTERNAL: "as-external-lsa",
}


class TedBuilder:
    """Watches the area databases and emits TedUpdated and LocalLinksChanged at ``flush``."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._process = instance.process
        self._reachability = Reachability(instance)
        self.prefixes = UsedPrefixes(instance, self._read_again)
        self.bier: BierTable | None = None
        """The BIER prefixes of all routers, where BIER runs."""
        if instance.settings.bier is not None:
            from fared.protocols.ospf.ted.bier import BierTable  # noqa: PLC0415 - where BIER runs

            self.bier = BierTable()
        self._routers: dict[tuple[AreaId, int], RouterFacts] = {}
        self._networks = NetworkTable()
        self._te_reader = TeReader()
        self._dirty: dict[tuple[AreaId, int], RouterFacts] = {}
        self._links_dirty: dict[AreaId, tuple[str, float]] = {}
        self._links: dict[AreaId, tuple[LocalLink, ...]] = {}
        self._own_networks = OwnNetworks(instance)

    def lsa_changed(self, entry: LsaEntry) -> None:
        """Process an LSA that is new, changed, or at MaxAge."""
        area, key = entry.lsdb.area, entry.key
        if area is not None and is_te_lsa(key):
            self._area_changed(area, entry)
            return
        if area is not None and key.ls_type == LsType.NETWORK:
            body, now = self._body(entry), self._process.now
            known = body if isinstance(body, NetworkLsa) else None
            self._networks.put(area, key, known, cause=_describe(entry), now=now)
        if Reachability.concerns(key):
            self._beyond_changed(entry)
        elif area is not None and (describes_router(key) or key.ls_type == LsType.OPAQUE_AREA):
            self._area_changed(area, entry)

    def borders(self) -> Iterator[tuple[AreaId, NodeId]]:
        """The area border routers of each area (RFC 2328 §A.4.2)."""
        for (area, _), router in self._routers.items():
            if router.body is not None and router.body.flags & B_BIT:
                yield area, router.node

    def _area_changed(self, area: AreaId, entry: LsaEntry) -> None:
        """Process an LSA that describes a router in an area: its router LSA, or an opaque one."""
        place = area, entry.key.advertising_router
        router = self._routers.get(place)
        if router is None:
            router = self._routers[place] = RouterFacts(NodeId(place[1]))
        if is_te_lsa(entry.key):
            changed = self._te_lsa(router, entry)
        elif entry.key.ls_type == LsType.ROUTER:
            changed = self._router_lsa(router, entry)
        else:
            changed = self._opaque_lsa(area, router, entry)
        if not changed:
            self._prune(area, router)
            return
        if router.cause is None:
            router.cause, router.since = _describe(entry), self._process.now
        self._dirty[place] = router

    def _read_again(self, entry: LsaEntry) -> None:
        """Process an LSA some of whose prefixes were ignored."""
        self.lsa_changed(entry)
        if entry.key.ls_type == LsType.AS_EXTERNAL:
            entry.body = None  # as the engine does: externals are too many to keep twice

    def _beyond_changed(self, entry: LsaEntry) -> None:
        """Process an LSA that advertises prefixes beyond an area."""
        own = entry.key.advertising_router == self._instance.router_id
        extended = entry.key.ls_type == LsType.OPAQUE_AREA
        if extended and self.bier is not None:
            self.bier.lsa_changed(entry, self._body(entry), _describe(entry), self._process.now)
        if own and entry.key.ls_type != LsType.AS_EXTERNAL:
            return  # RFC 2328 §16.2 (2): originated by the calculating router
        area, cause = entry.lsdb.area, partial(_describe, entry)
        body = self.prefixes.beyond(entry, self._body(entry))
        if not self._reachability.lsa_changed(entry, body, cause) or area is None:
            return
        key = area, entry.key.advertising_router
        router = self._routers.setdefault(key, RouterFacts(NodeId(key[1])))
        router.beyond = True
        if router.cause is None:
            router.cause, router.since = cause(), self._process.now
        self._dirty[key] = router

    def externals_withdrawn(self, entries: Sequence[LsaEntry]) -> None:
        """Process AS-external LSAs of one other router at MaxAge."""
        self.prefixes.withdrawn(entries)
        keys = [entry.key for entry in entries]
        self._reachability.externals_changed(keys, None, partial(_describe, entries[0]))

    def _opaque_lsa(self, area: AreaId, router: RouterFacts, entry: LsaEntry) -> bool:
        """Process an opaque LSA other than a TE LSA; return whether it changes the block."""
        kind = opaque_type(entry.key.link_state_id)
        if kind == self._instance.settings.information_type:
            self._offered(area, entry)
            return False
        return self._information(router, entry)

    def _offered(self, area: AreaId, entry: LsaEntry) -> None:
        """Pass on information of an application, of other routers."""
        key = entry.key
        if key.advertising_router == self._instance.router_id:
            return
        gone = entry.is_maxage(self._process.now)
        value = None if gone else entry.lsa.raw[LSA_HEADER_SIZE:]
        node, item = NodeId(key.advertising_router), key.link_state_id & _OPAQUE_ID
        self._process.emit(InformationUpdated(area, node, item, value))

    def links_changed(self, area: AreaId, cause: str) -> None:
        """The full adjacencies of an area may have changed."""
        self._links_dirty.setdefault(area, (cause, self._process.now))

    def all_links_changed(self, cause: str) -> None:
        """The full adjacencies of all areas may have changed."""
        for area in self._instance.areas:
            self.links_changed(area, cause)

    def interface_changed(self, interface: Interface, cause: str) -> None:
        """The networks of an interface, its links, or their properties may have changed."""
        cause = f"{interface.name} {cause}"
        self.links_changed(interface.settings.area, cause)
        self._own_networks.interface_changed(interface, cause)

    def flush(self) -> None:
        """Emit the changes since the last call."""
        dirty, self._dirty = self._dirty, {}
        for (area, _), router in dirty.items():
            self._emit(area, router)
        for (area, router_id), found in self._reachability.take().items():
            changes, cause = found.changes, found.cause
            self._process.emit(
                PrefixesUpdated(area, NodeId(router_id), changes, cause, found.since)
            )
        for update in self._networks.updates():
            self._process.emit(update)
        for prefixes in () if self.bier is None else self.bier.take():
            self._process.emit(prefixes)
        pending, self._links_dirty = self._links_dirty, {}
        for area, (cause, since) in pending.items():
            links = self._local_links(area)
            if links != self._links.get(area, ()):
                self._links[area] = links
                self._process.emit(LocalLinksChanged(area, links, cause, since))
        for changed in self._own_networks.updates():
            self._process.emit(changed)

    # LSAs

    def _body(self, entry: LsaEntry) -> LsaBody | None:
        """The decoded body; None at MaxAge, or if it cannot be decoded."""
        # RFC 2328 §16: an LSA of age MaxAge is treated as if it were not found
        if entry.is_maxage(self._process.now):
            return None
        if entry.body is None:
            try:
                entry.body = decode_body(entry.lsa)
            except DecodeError as error:
                self._unreadable(entry, error)
        return entry.body

    def _unreadable(self, entry: LsaEntry, error: DecodeError) -> None:
        source = entry.key.advertising_router
        self._process.reject("lsa-body", source, lsa=_describe(entry), what=str(error))

    def _router_lsa(self, router: RouterFacts, entry: LsaEntry) -> bool:
        body = self._body(entry)
        known = body if isinstance(body, RouterLsa) else None
        router.body = self.prefixes.of_router(entry, known, router.body)
        router.relisted = True
        return True

    def _information(self, router: RouterFacts, entry: LsaEntry) -> bool:
        body = self._body(entry)
        name = body.hostname if isinstance(body, RouterInformation) else None
        if name is None and router.hostname_key != entry.key:
            return False
        if name == router.hostname:
            return False
        router.hostname = name
        router.hostname_key = entry.key if name is not None else None
        if router.block is not None:
            router.block = replace(router.block, hostname=name)
        return True

    def _te_lsa(self, router: RouterFacts, entry: LsaEntry) -> bool:
        """Store a TE LSA; return whether it describes a link."""
        key = entry.key
        old = router.te.get(key)
        new = self._te_facts(entry)
        if new is None and old is None:
            return False
        if new is None:
            router.rebuild |= not withdraw(router, key)
            return True
        router.te[key] = new
        same = old is not None and old.identity == new.identity
        if (same and key in router.row_of) or (old is None and fits(router, key, new)):
            router.patched[key] = None
        else:
            router.rebuild = True
        return True

    def _te_facts(self, entry: LsaEntry) -> TeFacts | None:
        """The values of a TE LSA that routes need, without storing its body; None as ``_body``."""
        if entry.is_maxage(self._process.now):
            return None
        if entry.body is not None:
            return facts_of(entry.body) if isinstance(entry.body, TeLink) else None
        try:
            return self._te_reader.read(entry.raw)
        except DecodeError as error:
            self._unreadable(entry, error)
            return None

    # Blocks

    def _emit(self, area: AreaId, router: RouterFacts) -> None:
        cause, since = router.cause or "", router.since
        router.cause = None
        self._renew(router)
        if router.beyond and router.block is not None:
            router.block = self._with_beyond(area, router, router.block, cause)
        router.beyond = False
        router.rebuild = router.relisted = False
        router.withdrawn.clear()
        router.patched.clear()
        before, router.emitted = router.emitted, router.block
        self._prune(area, router)
        if not same_block(before, router.block):
            self._process.emit(TedUpdated(area, router.node, router.block, cause, since))

    def _renew(self, router: RouterFacts) -> None:
        """Renew the block of a router."""
        body, block = router.body, router.block
        if body is None:
            router.block = None
            return
        router.beyond |= router.relisted
        if block is not None and router.relisted and not router.rebuild:
            block = shrunk(router, block, body)
        if block is None or router.rebuild or any(name in router.rows for name in router.withdrawn):
            router.beyond = True
            router.block = build(router, body)
        else:
            router.block = patch(router, block)

    def _with_beyond(
        self, area: AreaId, router: RouterFacts, block: NodeBlock, cause: str
    ) -> NodeBlock:
        """The block with its E and V bits, and with the AS boundary routers that it advertises."""
        # RFC 2328 §12.4.1, bit E
        is_asbr = router.body is not None and bool(router.body.flags & E_BIT)
        self._reachability.set_asbr(area, router.node, lambda: cause, is_asbr=is_asbr)
        asbr_routes = self._reachability.asbr_routes(area, block.node)
        # §12.4.1, bit V
        ends = router.body is not None and bool(router.body.flags & V_BIT)
        if (block.is_asbr, block.virtual_end, block.asbr_routes) == (is_asbr, ends, asbr_routes):
            return block
        return replace(block, is_asbr=is_asbr, virtual_end=ends, asbr_routes=asbr_routes)

    def _prune(self, area: AreaId, router: RouterFacts) -> None:
        """Remove a router without LSAs."""
        if router.body is None and not router.te and router.hostname is None:
            self._routers.pop((area, router.node), None)

    def _local_links(self, area: AreaId) -> tuple[LocalLink, ...]:
        return tuple(
            [
                LocalLink(
                    ifindex=interface.ifindex,
                    interface=interface.name,
                    neighbor=NodeId(neighbor.router_id),
                    gateway=neighbor.address,
                    local_id=interface.link_data,
                    metric=contents.link_metric(self._instance, interface),
                    bandwidth=interface.bandwidth.capacity,
                    onlink=needs_onlink(interface.link.ipv4(), neighbor.address),
                )
                for interface in self._instance.area_interfaces(area)
                for neighbor in contents.next_hop_neighbors(interface)
            ]
        )


def _describe(entry: LsaEntry) -> str:
    """An LSA as the cause of a change: ``router-lsa 10.255.0.1 seq 0x80000005``."""
    head = entry.lsa.header
    number = f"seq {head.ls_sequence_number & _WORD:#010x}"
    router = dotted(head.advertising_router)
    if head.ls_type == LsType.ROUTER:
        return f"router-lsa {router} {number}"
    if head.ls_type == LsType.NETWORK:
        return f"network-lsa {dotted(head.link_state_id)} {number}"
    if Reachability.concerns(head.key):
        kind = _BEYOND.get(head.ls_type, "extended-prefix-lsa")
        return f"{kind} {router}/{dotted(head.link_state_id)} {number}"
    kind = "te-link-lsa"
    if opaque_type(head.link_state_id) != OpaqueType.TRAFFIC_ENGINEERING:
        kind = "opaque-lsa"
    return f"{kind} {router}/{head.link_state_id & _OPAQUE_ID} {number}"
