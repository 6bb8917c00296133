"""The addresses to which members of a job send: whoever floods the job has chosen them."""

from __future__ import annotations

from fared.core.ids import NodeId
from fared.extensions.ina.control.advert import JobAdvert
from fared.extensions.ina.plan.model import Vertex, members


def addresses_of(advert: JobAdvert, node: NodeId) -> set[tuple[str, int]]:
    """Return all addresses to which members of a job send, and who is to have them behind it.

    Whoever floods the job has chosen them. Of a job of several areas it is those to which this
    router and its workers send: it may not know others.
    """
    endpoints = advert.job.members
    wanted = _sent_to(advert, node) if advert.wide else endpoints.keys()
    return {
        (endpoints[vertex].address, advert.leaves[-vertex] if vertex < 0 else vertex)
        for vertex in wanted
        if vertex >= 0 or -vertex in advert.leaves
    }


def _sent_to(advert: JobAdvert, node: NodeId) -> set[Vertex]:
    """Return the members to which a router, and the workers behind it, send."""
    setup, found = advert.job.setup, set[Vertex]()
    for role in setup.roles(node):
        found |= {at for at in (role.parent, role.above) if at is not None}
        found |= role.senders.keys() | role.below.keys()
        found |= {-bfr_id for bfr_id in members(role.bits | role.direct)}
    own = {-bfr_id for bfr_id, leaf in advert.leaves.items() if leaf == node}
    found |= own
    if own and not setup.trees:
        found |= {-bfr_id for bfr_id in setup.workers}
    for tree in setup.trees:
        found |= {tree.parents[worker] for worker in own & tree.parents.keys()}
    return found & advert.job.members.keys()
