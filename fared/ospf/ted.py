"""From the link state database to the TED: one ``NodeBlock`` a router, kept up to date cheaply.

A router with 512 links floods 512 TE LSAs which arrive one at a time. So what routes take from
each is read once and kept, a TE LSA that fits its row exactly patches a copy of two arrays, and
only changes of the router LSA (or links told apart by nothing but their order) match anew.
How the arrays come about is in ``blocks``.
"""

from __future__ import annotations

from dataclasses import replace

from fared.core.ids import AreaId, NodeId, dotted
from fared.core.wire import DecodeError
from fared.ospf import contents
from fared.ospf.blocks import RouterFacts, build, fits, patch
from fared.ospf.events import LocalLinksChanged, TedUpdated
from fared.ospf.instance import Instance
from fared.ospf.lsdb import LsaEntry
from fared.ospf.networks import NetworkTable
from fared.ospf.packet.bodies import E_BIT, NetworkLsa, RouterLsa
from fared.ospf.packet.body import LsaBody, decode_body, opaque_type
from fared.ospf.packet.lsa import LsType
from fared.ospf.packet.opaque import OpaqueType, RouterInformation, TeLink
from fared.ospf.packet.te_facts import TeFacts, TeReader, facts_of
from fared.ospf.reachability import Reachability
from fared.ted.compare import Difference, difference
from fared.ted.model import LocalLink, NodeBlock

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
        self._reachability = Reachability(instance)
        self._routers: dict[tuple[AreaId, int], RouterFacts] = {}
        self._networks = NetworkTable()
        self._te_reader = TeReader()
        self._dirty: dict[tuple[AreaId, int], RouterFacts] = {}
        self._links_dirty: dict[AreaId, tuple[str, float]] = {}
        self._links: dict[AreaId, tuple[LocalLink, ...]] = {}

    def lsa_changed(self, entry: LsaEntry) -> None:
        """Take note of an LSA that is new, different, or at MaxAge."""
        area = entry.lsdb.area
        key = entry.key
        if area is not None and key.ls_type == LsType.NETWORK:
            body, now = self._body(entry), self._instance.now
            known = body if isinstance(body, NetworkLsa) else None
            self._networks.put(area, key, known, cause=_describe(entry), now=now)
        if Reachability.concerns(key):
            self._beyond_changed(entry)
            return
        if area is None or key.ls_type not in (LsType.ROUTER, LsType.OPAQUE_AREA):
            return
        router = self._routers.get((area, key.advertising_router))
        if router is None:
            router = RouterFacts(NodeId(key.advertising_router))
            self._routers[area, key.advertising_router] = router
        if key.ls_type == LsType.ROUTER:
            self._router_lsa(router, entry)
        elif opaque_type(key.link_state_id) == OpaqueType.TRAFFIC_ENGINEERING:
            if not self._te_lsa(router, entry):
                self._prune(area, router)
                return
        elif not self._information(router, entry):
            self._prune(area, router)
            return
        if router.cause is None:
            router.cause, router.since = _describe(entry), self._instance.now
        self._dirty[area, key.advertising_router] = router

    def _beyond_changed(self, entry: LsaEntry) -> None:
        """Take note of an LSA that tells of prefixes beyond an area."""
        own = entry.key.advertising_router == self._instance.router_id
        if own and entry.key.ls_type != LsType.AS_EXTERNAL:
            return  # what we tell others is no news to us
        for area, router_id in self._reachability.lsa_changed(entry, self._body(entry)):
            router = self._routers.get((area, router_id))
            if router is None:
                router = self._routers[area, router_id] = RouterFacts(NodeId(router_id))
            router.beyond = True
            if router.cause is None:
                router.cause, router.since = _describe(entry), self._instance.now
            self._dirty[area, router_id] = router

    def links_changed(self, area: AreaId, cause: str) -> None:
        """The full adjacencies of an area may have changed."""
        self._links_dirty.setdefault(area, (cause, self._instance.now))

    def all_links_changed(self, cause: str) -> None:
        """The same for every area."""
        for area in self._instance.areas:
            self.links_changed(area, cause)

    def withdraw_all(self) -> list[TedUpdated | LocalLinksChanged]:
        """Say that nothing is known any more, for a router that starts anew."""
        now, cause = self._instance.now, "router id changed"
        gone: list[TedUpdated | LocalLinksChanged] = [
            TedUpdated(area, router.node, None, topology=True, cause=cause, since=now)
            for (area, _), router in self._routers.items()
            if router.emitted is not None
        ]
        gone += self._networks.withdrawals(cause, now)
        gone += [LocalLinksChanged(area, (), cause, now) for area in self._links]
        return gone

    def flush(self) -> None:
        """Emit what changed since the last call."""
        dirty, self._dirty = self._dirty, {}
        for (area, _), router in dirty.items():
            self._emit(area, router)
        for update in self._networks.updates():
            self._instance.emit(update)
        pending, self._links_dirty = self._links_dirty, {}
        for area, (cause, since) in pending.items():
            links = self._local_links(area)
            if links != self._links.get(area, ()):
                self._links[area] = links
                self._instance.emit(LocalLinksChanged(area, links, cause, since))

    # What the LSAs say

    def _body(self, entry: LsaEntry) -> LsaBody | None:
        """The decoded body; None at MaxAge, or if it cannot be read."""
        if entry.maxed(self._instance.now):
            return None
        if entry.body is None:
            try:
                entry.body = decode_body(entry.lsa)
            except DecodeError as error:
                self._unreadable(entry, error)
        return entry.body

    def _unreadable(self, entry: LsaEntry, error: DecodeError) -> None:
        source = entry.key.advertising_router
        self._instance.reject("lsa-body", source, lsa=_describe(entry), what=str(error))

    def _router_lsa(self, router: RouterFacts, entry: LsaEntry) -> None:
        body = self._body(entry)
        router.body = body if isinstance(body, RouterLsa) else None
        router.rebuild = True

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
        """Note what a TE LSA says; return whether it concerns a link at all."""
        key = entry.key
        old = router.te.get(key)
        new = self._te_facts(entry)
        if new is None and old is None:
            return False
        if new is None:
            del router.te[key]
        else:
            router.te[key] = new
        same = old is not None and new is not None and old.identity == new.identity
        if not same:
            router.named = None
        patchable = (same and key in router.row_of) or (
            old is None and new is not None and fits(router, key, new)
        )
        if patchable:
            router.patched[key] = None
        else:
            router.rebuild = True
        return True

    def _te_facts(self, entry: LsaEntry) -> TeFacts | None:
        """What routes take from a TE LSA, whose body is not kept; None as with ``_body``."""
        if entry.maxed(self._instance.now):
            return None
        if entry.body is not None:
            return facts_of(entry.body) if isinstance(entry.body, TeLink) else None
        try:
            return self._te_reader.read(entry.lsa.raw)
        except DecodeError as error:
            self._unreadable(entry, error)
            return None

    # Blocks

    def _emit(self, area: AreaId, router: RouterFacts) -> None:
        cause, since = router.cause or "", router.since
        router.cause = None
        if router.body is None:
            router.block = None
        elif router.rebuild or router.block is None:
            router.block = build(router, router.body)
            router.prefixes = router.block.prefixes
            router.beyond = True
        elif router.patched:
            router.block = patch(router, router.block)
        if router.beyond and router.block is not None:
            router.block = self._with_beyond(area, router, router.block)
        router.beyond = False
        router.rebuild = False
        router.patched.clear()
        before, router.emitted = router.emitted, router.block
        self._prune(area, router)
        found = difference(before, router.block)
        if found is Difference.NONE:
            return
        topology = found is Difference.SHAPE
        self._instance.emit(TedUpdated(area, router.node, router.block, topology, cause, since))

    def _with_beyond(self, area: AreaId, router: RouterFacts, block: NodeBlock) -> NodeBlock:
        """The block with all that the router reaches beyond its own links."""
        boundary = router.body is not None and bool(router.body.flags & E_BIT)
        node = block.node
        beyond = self._reachability.attachments(area, node, boundary=boundary)
        leads_to = self._reachability.leads_to(area, node)
        prefixes = router.prefixes + beyond
        if (block.prefixes, block.boundary, block.leads_to) == (prefixes, boundary, leads_to):
            return block
        return replace(block, prefixes=prefixes, boundary=boundary, leads_to=leads_to)

    def _prune(self, area: AreaId, router: RouterFacts) -> None:
        """Forget a router of which nothing is left."""
        if router.body is None and not router.te and router.hostname is None:
            self._routers.pop((area, router.node), None)

    def _local_links(self, area: AreaId) -> tuple[LocalLink, ...]:
        return tuple(
            LocalLink(
                ifindex=interface.ifindex,
                interface=interface.name,
                neighbor=NodeId(neighbor.router_id),
                gateway=neighbor.address,
                local_id=interface.link_data,
                metric=contents.link_metric(self._instance, interface),
                bandwidth=interface.bandwidth.capacity,
                onlink=interface.unnumbered,
            )
            for interface in self._instance.area_interfaces(area)
            for neighbor in contents.next_hop_neighbors(interface)
        )


def _describe(entry: LsaEntry) -> str:
    """Name an LSA in words: ``router-lsa 10.255.0.1 seq 0x80000005``."""
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
