"""The routes of a router that change, before and after (``fared-routes-diff/1``)."""

from __future__ import annotations

from typing import Any

from fared.core.ids import parse_prefix

Json = dict[str, Any]
_HEAD = ("metric", "type", "area", "connected")
_HOP = ("interface", "address", "neighbor", "hostname")
_MOVED = ("weight", "share", "capacity")


def difference(before: Json, after: Json, changes: list[str]) -> Json:
    """Compare two routes documents of the same root; unchanged routes are only counted."""
    old = {route["prefix"]: route for route in before["routes"]}
    new = {route["prefix"]: route for route in after["routes"]}
    prefixes = sorted({*old, *new}, key=parse_prefix)
    rows = [_route(prefix, old.get(prefix), new.get(prefix)) for prefix in prefixes]
    changed = [row for row in rows if _matters(row)]
    return {
        "format": "fared-routes-diff/1",
        "root": after["root"],
        "af": after["af"],
        "changes": changes,
        "routes": changed,
        "unchanged": len(rows) - len(changed),
        "nodes": after["nodes"],
        "ignored": after["ignored"],
    }


def _route(prefix: str, old: Json | None, new: Json | None) -> Json:
    old_hops, new_hops = _hops(old), _hops(new)
    return {
        "prefix": prefix,
        "before": _part(old, _HEAD),
        "after": _part(new, _HEAD),
        "nexthops": [
            {
                **{name: (old_hops.get(key) or new_hops[key])[name] for name in _HOP},
                "before": _part(old_hops.get(key), _MOVED),
                "after": _part(new_hops.get(key), _MOVED),
            }
            for key in dict.fromkeys((*old_hops, *new_hops))
        ],
    }


def _hops(route: Json | None) -> dict[tuple[str | None, ...], Json]:
    """The next hops of a route by interface, address and neighbor; equal ones by their order."""
    found: dict[tuple[str | None, ...], Json] = {}
    for hop in route["nexthops"] if route else ():
        key: tuple[str | None, ...] = (hop["interface"], hop["address"], hop["neighbor"])
        while key in found:
            key = (*key, "again")
        found[key] = hop
    return found


def _part(value: Json | None, names: tuple[str, ...]) -> Json | None:
    return None if value is None else {name: value[name] for name in names}


def _matters(row: Json) -> bool:
    """Whether the metric or a weight changes; a change of capacity alone moves no traffic."""
    if row["before"] != row["after"]:
        return True
    weights = [
        [hop[when] and hop[when]["weight"] for when in ("before", "after")]
        for hop in row["nexthops"]
    ]
    return any(old != new for old, new in weights)
