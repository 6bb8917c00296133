"""The metrics of engines: counters, expected neighbors, databases and limits. For ``metrics``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric

from fared.core.ids import format_node
from fared.management.api.metrics import counter, gauge
from fared.management.documents.census import Census
from fared.management.documents.context import ViewContext
from fared.management.documents.views.expected import expected
from fared.management.documents.views.reached import lowest_reached
from fared.protocols.igp.database_limit import Fullness
from fared.protocols.igp.events import ADJACENT

Labels = tuple[str, ...]


def of_engines(context: ViewContext, censuses: Mapping[str, Census]) -> Iterator[Metric]:
    """Yield the families of all protocols."""
    yield from _engines(context, censuses)
    yield from _expected(context, censuses)
    yield from _databases(context, censuses)
    yield from _limits(context)
    yield from _prefixes(context)


def _engines(context: ViewContext, censuses: Mapping[str, Census]) -> Iterator[Metric]:
    """The engines' counters; what they can count begins at 0."""
    transitions: dict[Labels, int] = {}
    ended: dict[Labels, int] = {}
    packets: dict[Labels, int] = {}
    errors: dict[Labels, int] = {}
    ids: dict[Labels, int] = {}
    hostname = context.router.settings.hostname or ""
    for name, instance in context.router.instances.items():
        ids[name, format_node(instance.root), hostname] = 1
        counted = instance.engine.counters
        if name in censuses:
            can = censuses[name].countable
            transitions.update({(name, *states): 0 for states in can.transitions})
            packets.update({(name, *kind): 0 for kind in can.packets})
            errors.update({(name, reason): 0 for reason in can.errors})
        transitions.update({(name, *states): n for states, n in counted.transitions.items()})
        up = ((states, n) for states, n in counted.transitions.items() if states[0] in ADJACENT)
        ended[name,] = sum(n for _, n in up)
        packets.update({(name, *kind): n for kind, n in counted.packets.items()})
        errors.update({(name, reason): n for reason, n in counted.errors.items()})
    text = "1: the router id (IS-IS: system id) and the hostname of this router"
    yield gauge("router_info", text, ids, ("proto", "router_id", "hostname"))
    labels: Labels = ("proto", "from", "to")
    yield counter("neighbor_transitions", "Neighbor state changes", transitions, labels)
    yield counter("adjacencies_ended", "Adjacencies that were up and ended", ended, ("proto",))
    labels = ("proto", "direction", "type")
    yield counter("packets", "Protocol packets", packets, labels)
    labels = ("proto", "reason")
    yield counter("packet_errors", "Packets that were discarded", errors, labels)


def _expected(context: ViewContext, censuses: Mapping[str, Census]) -> Iterator[Metric]:
    """Links and neighbors, those included that are not there (``views.expected``)."""
    found = expected(context, censuses)
    links: dict[Labels, int] = {(name,): int(up) for name, up in found.links.items()}
    text = "1 while an interface that should have a neighbor is up; 0: down, or absent"
    yield gauge("link_up", text, links, ("interface",))
    neighbors: dict[Labels, int] = {
        (one.interface, one.neighbor, one.proto): int(one.up) for one in found.neighbors
    }
    text = "1 while a neighbor is adjacent; without a neighbor: the interface has met none"
    yield gauge("neighbor_up", text, neighbors, ("interface", "neighbor", "proto"))


def _databases(context: ViewContext, censuses: Mapping[str, Census]) -> Iterator[Metric]:
    """The neighbors and databases of the engines."""
    neighbors: dict[Labels, int] = {}
    entries: dict[Labels, int] = {}
    checksums: dict[Labels, int] = {}
    for name, census in censuses.items():
        neighbors.update({(name, *at): n for at, n in census.neighbors.items()})
        entries.update({(name, *at): n for at, n in census.entries.items()})
        instance = context.router.instances[name]
        lowest = dict.fromkeys(census.checksums, format_node(instance.root))
        lowest.update(lowest_reached(context, instance))
        checksums.update({(name, at, lowest[at]): n for at, n in census.checksums.items()})
    yield gauge("neighbors", "Neighbors by state", neighbors, ("proto", "area", "state"))
    labels: Labels = ("proto", "area", "type")
    yield gauge("lsdb_entries", "LSAs or LSPs in the database", entries, labels)
    text = (
        "Sum of the checksums of an area or level (RFC 4750): equal on all its routers that reach "
        "one another, and with that the same router of the lowest id"
    )
    yield gauge("lsdb_checksum", text, checksums, ("proto", "area", "lowest"))


def _limits(context: ViewContext) -> Iterator[Metric]:
    """The limits of the databases (``igp.database_limit``)."""
    known = {
        (name, area): limit
        for name, instance in context.router.instances.items()
        for area, limit in instance.engine.limits.items()
    }
    labels: Labels = ("proto", "area")
    limits = {at: limit.limit for at, limit in known.items()}
    yield gauge("lsdb_limit", "Most LSAs or LSPs", limits, labels)
    full = {at: int(limit.state is Fullness.FULL) for at, limit in known.items()}
    yield gauge("lsdb_full", "Whether new LSAs or LSPs are ignored", full, labels)
    ignored = {at: limit.ignored for at, limit in known.items()}
    yield counter("lsdb_ignored", "LSAs or LSPs ignored by a full database", ignored, labels)


def _prefixes(context: ViewContext) -> Iterator[Metric]:
    """The limit of the prefixes that are used (``igp.prefix_limit``)."""
    known = {(name,): i.engine.prefix_limit for name, i in context.router.instances.items()}
    labels: Labels = ("proto",)
    used = {at: limit.entries for at, limit in known.items()}
    yield gauge("prefixes_used", "Prefixes in use, of all routers", used, labels)
    limits = {at: limit.limit for at, limit in known.items()}
    yield gauge("prefixes_limit", "Most prefixes in use", limits, labels)
    full = {at: int(limit.state is Fullness.FULL) for at, limit in known.items()}
    yield gauge("prefixes_full", "Whether new prefixes are ignored", full, labels)
    ignored = {at: limit.ignored for at, limit in known.items()}
    yield counter("prefixes_ignored", "Prefixes ignored for lack of room", ignored, labels)
