"""The conclusion of a report of failures, in sentences: what a person asks first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fared.extensions.offline.plan.sets import DEGRADE, DOUBLES, GROUPS, LINKS, NODES
from fared.management.documents import human
from fared.management.documents.cells import count

Json = dict[str, Any]
_NAMED: Final = 6
_OTHERS: Final = {DOUBLES: "two failures", DEGRADE: "loss of capacity"}
_ONE: Final = {LINKS: "link", NODES: "router", GROUPS: "group"}


class Said(msgspec.Struct, frozen=True):
    """A sentence; ``kind``: good, bad, or empty."""

    kind: str
    text: str


def conclusions(document: Json) -> Iterator[Said]:
    """Yield what failures do to the pairs, the worst first, and to the traffic."""
    yield _single(document)
    for one in document["sets"]:
        worst = next((row for row in document["rows"] if _is_worst(row, one)), None)
        if worst is not None and one["left"] < 1.0:
            yield _worst(one, worst)
    spare = document["never_matter"]
    if spare:
        several = "any of them" if len(spare) > 1 else "it"
        yield Said("", f"{count(len(spare), 'link')}: without {several} no pair has less.")
    yield from _traffic(document)


def _single(document: Json) -> Said:
    """Say whether one failure cuts a pair of ends apart."""
    cutting = [entry["failure"] for entry in document["single_points"]]
    if cutting:
        more = f" and {len(cutting) - _NAMED} more" if len(cutting) > _NAMED else ""
        named = f"{', '.join(cutting[:_NAMED])}{more}"
        points = "is a single point" if len(cutting) == 1 else f"are {len(cutting)} single points"
        return Said("bad", f"There {points} of failure: {named}.")
    kinds = [_ONE[one["set"]] for one in document["sets"] if one["set"] in _ONE]
    if not kinds:
        return Said("", "No single failures were computed.")
    return Said("good", f"No failure of one {' or '.join(kinds)} cuts a pair apart.")


def _is_worst(row: Json, one: Json) -> bool:
    return bool(row["set"] == one["set"] and row["left"] == one["left"] and row["pair"])


def _worst(one: Json, row: Json) -> Said:
    kind = one["set"]
    what = f"failure of one {_ONE[kind]}" if kind in _ONE else _OTHERS.get(kind, f"of {kind}")
    pair, kept = " > ".join(row["pair"]), human.share(row["left"])
    cuts = f"; {one['cut']:,} of {one['failures']:,} cut a pair" if one["cut"] else ""
    leaves = "leave" if kind == DOUBLES else "leaves"
    rate = human.bandwidth(row["capacity"])
    text = f"The worst {what}, {row['failure']}, {leaves} {pair} {kept} ({rate}){cuts}."
    return Said("bad" if one["cut"] else "", text)


def _traffic(document: Json) -> Iterator[Said]:
    """Say what the worst failure does to the traffic."""
    if document["traffic"] is None:
        return
    found = document["sets"]
    healthy = document["traffic"]["utilization"]
    if not found:
        return
    worst = max(found, key=lambda one: float(one["traffic"]["utilization"]))["traffic"]
    load = worst["utilization"]
    text = f"The traffic loads the busiest link to {healthy:.0%}"
    if worst["busiest"]:
        text += f", and {worst['busiest']} to {load:.0%} after {worst['failure']}"
    yield Said("bad" if load > 1.0 or worst["unserved"] else "", f"{text}.")
