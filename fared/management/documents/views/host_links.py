"""What the hosts of this router can send, beside what its links to routers carry.

Databases have the links between routers only, so a router knows this of itself alone. Hosts are
behind its passive interfaces: those that a protocol advertises and that need no neighbor.
"""

from __future__ import annotations

from collections.abc import Iterable

from fared.management.documents.census import Census
from fared.management.documents.context import ViewContext
from fared.management.documents.fabric import Oversubscription


def oversubscription(context: ViewContext, censuses: Iterable[Census]) -> Oversubscription | None:
    """Return the capacity of links to hosts and to routers that are up; None: one of them has none.

    Links of unknown capacity count for nothing.
    """
    known = list(censuses)
    towards = {name for census in known for name in census.links}
    capacities = {
        name: capacity
        for census in known
        for ifindex, name, capacity in census.capacities
        if ifindex in context.links and context.links[ifindex].up
    }
    routers = sum(capacity for name, capacity in capacities.items() if name in towards)
    hosts = sum(capacities.values()) - routers
    if not hosts or not routers:
        return None
    return Oversubscription(hosts=hosts, routers=routers, ratio=hosts / routers)
