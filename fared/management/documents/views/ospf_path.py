"""The advertisements that OSPF routers use, for ``path``: others use a border router's summaries.

It ignores those that it originates itself (RFC 2328 §16.2 (2)), so its own TED lacks them.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from fared.core.ids import NodeId, Prefix, RouterId
from fared.core.rng import NoJitter
from fared.core.wire import DecodeError
from fared.management.documents.context import ViewContext
from fared.management.documents.each import OwnPrefixes
from fared.paths.rib.selector import Advertisements
from fared.paths.rib.solver import RouteSolver
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.packet.body import LsaBody, decode_body
from fared.protocols.ospf.packet.lsa import LsaKey, LsType
from fared.protocols.ospf.ted.external_capacities import external_keys
from fared.protocols.ospf.ted.reachability import Reachability

_NOBODY = RouterId(0)
_CAPACITIES = (LsType.OPAQUE_AREA, LsType.OPAQUE_AS)
_FORWARDING_ADDRESS = slice(28, 32)
"""Of an AS-external LSA (RFC 2328 §A.4.5)."""
_NO_ADDRESS = bytes(4)


class Perspectives:
    """The advertisements of a prefix, those of the solver's own router included."""

    def __init__(self, solver: RouteSolver, own: OwnPrefixes, prefix: Prefix) -> None:
        found = dict(solver.advertisements(prefix))
        for area, advertised in own.items():
            known = found.get((area, solver.root), ())
            more = tuple(item for item in advertised if item not in known)
            found[area, solver.root] = (*known, *more)
        self._advertised = {at: items for at, items in found.items() if items}

    def of(self, node: NodeId) -> Advertisements:
        """Return the same for every router: the solver ignores those that it must."""
        del node
        return self._advertised


def own_prefixes(context: ViewContext, prefix: Prefix) -> OwnPrefixes:
    """Return what this router advertises of a prefix beyond an area, by area, as others read it.

    If an AS-external LSA of the prefix has a forwarding address, that is of all prefixes.
    """
    instance = context.ospf.instance
    if len(instance.areas) < 2:
        return {}
    externals = {
        key: entry
        for router in instance.as_scope.originators
        for key in external_keys(router, prefix)
        if (entry := instance.as_scope.get(key)) is not None
    }
    forwarded = any(entry.raw[_FORWARDING_ADDRESS] != _NO_ADDRESS for entry in externals.values())
    reader = Instance(replace(instance.settings, router_id=_NOBODY), NoJitter())
    reader.process.now = instance.process.now
    reader.areas = instance.areas
    reader.as_scope.entries.update(externals)
    reachability = Reachability(reader)
    sources = {key.advertising_router for key in externals} | {instance.router_id}
    for entry in _beyond(instance, sources, None if forwarded else prefix):
        reachability.lsa_changed(entry, _body(entry), str)
    return {
        area: tuple(item for item in changed.changes.values() if item is not None)
        for (area, router), changed in reachability.take().items()
        if router == instance.router_id
    }


def _beyond(instance: Instance, sources: set[int], prefix: Prefix | None) -> Iterator[LsaEntry]:
    """Yield path capacities that some routers advertise, and the summaries of this one."""
    databases = [area.lsdb for area in instance.areas.values()]
    if len(sources) > 1:
        databases.append(instance.as_scope)
    for lsdb in databases:
        for key, entry in lsdb.entries.items():
            if key.advertising_router in sources and Reachability.concerns(key):
                own = key.advertising_router == instance.router_id
                if key.ls_type in _CAPACITIES or (own and _may_be(key, prefix)):
                    yield entry


def _may_be(key: LsaKey, prefix: Prefix | None) -> bool:
    """Whether it is a summary of an ASBR, or may be one of a prefix (None: of any)."""
    if key.ls_type == LsType.SUMMARY_ASBR:
        return True
    # host bits may be set in the link state id (RFC 2328 appendix E)
    named = prefix is None or prefix.contains(key.link_state_id)
    return key.ls_type == LsType.SUMMARY_NETWORK and named


def _body(entry: LsaEntry) -> LsaBody | None:
    try:
        return decode_body(entry.lsa)
    except DecodeError:
        return None
