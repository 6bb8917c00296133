"""The metrics of BGP sessions and tables. For ``metrics``, where BGP runs."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from fared.management.api.metrics import counter, gauge
from fared.management.documents.context import ViewContext
from fared.management.documents.views import bgp

Labels = tuple[str, ...]
_NEIGHBOR: Labels = ("neighbor",)


def of_bgp(context: ViewContext) -> Iterator[Metric]:
    """Yield the families; ``neighbor`` is the key of the configuration."""
    sessions = [one for one in bgp.neighbors(context) if not one.shutdown]
    up = {(one.peer,): int(one.state == "Established") for one in sessions}
    yield gauge("bgp_session_up", "1 while a BGP session is established", up, _NEIGHBOR)
    ended = {(one.peer,): one.flaps for one in sessions}
    yield counter("bgp_sessions_ended", "Established sessions that ended", ended, _NEIGHBOR)
    updates: dict[Labels, int] = {}
    prefixes: dict[Labels, int] = {}
    speakers = {one.name: one for one in context.bgp.instance.neighbors.values()}
    for one in sessions:
        # documents count since `clear counters`, metrics since the start
        updates[one.peer, "received"] = speakers[one.peer].received
        updates[one.peer, "sent"] = speakers[one.peer].sent
        for family in one.families:
            prefixes[one.peer, family.af, "received"] = family.received
            prefixes[one.peer, family.af, "sent"] = family.advertised
    labels: Labels = ("neighbor", "direction")
    yield counter("bgp_updates", "UPDATE messages", updates, labels)
    rejected = {(one.peer,): speakers[one.peer].rejected for one in sessions}
    text = "UPDATE messages of which something was not accepted"
    yield counter("bgp_updates_rejected", text, rejected, _NEIGHBOR)
    labels = ("neighbor", "af", "direction")
    yield gauge(
        "bgp_prefixes",
        "Prefixes that a neighbor advertises, and that are advertised to it",
        prefixes,
        labels,
    )
    limits = {(one.peer,): most for one in sessions if (most := one.maximum_prefixes) is not None}
    yield gauge("bgp_prefixes_limit", "Most prefixes of a neighbor", limits, _NEIGHBOR)
    waiting = {(one.peer,): sum(family.waiting for family in one.families) for one in sessions}
    text = "Prefixes whose changed bandwidth a neighbor does not know yet"
    yield gauge("bgp_bandwidths_waiting", text, waiting, _NEIGHBOR)
    tables = bgp.status(context).families
    groups = {(table.af,): table.groups for table in tables}
    yield gauge("bgp_groups", "Groups of prefixes with equal paths", groups, ("af",))
    undecided = {(table.af,): table.undecided for table in tables}
    yield gauge("bgp_undecided", "Prefixes that wait for a decision", undecided, ("af",))
