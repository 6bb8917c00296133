"""What a change makes better and worse: two reports side by side (``fared-plan-compare/1``)."""

from __future__ import annotations

from typing import Any

from fared.extensions.offline.plan.document import FORMAT, set_named

Json = dict[str, Any]
_SAME = 1e-9


def compare(old: Json, new: Json) -> Json:
    """Compare two reports: sets in both, and failures by name. Raises ValueError."""
    for document in (old, new):
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ValueError(f"not a {FORMAT} document")
    try:
        return _compared(old, new)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a whole {FORMAT} document: {error}") from error


def _compared(old: Json, new: Json) -> Json:
    before, after = _rows(old), _rows(new)
    both = [key for key in after if key in before]
    changed = [_change(key, before[key], after[key]) for key in both]
    better = [row for row in changed if row["by"] > _SAME]
    worse = [row for row in changed if row["by"] < -_SAME]
    names = [one["set"] for one in new["sets"] if set_named(old, one["set"]) is not None]
    return {
        "format": "fared-plan-compare/1",
        "sets": [
            {
                "set": name,
                "before": _summary(set_named(old, name)),
                "after": _summary(set_named(new, name)),
            }
            for name in names
        ],
        "healthy": {"before": old["healthy"], "after": new["healthy"]},
        "better": sorted(better, key=lambda row: -row["by"]),
        "worse": sorted(worse, key=lambda row: row["by"]),
        "same": len(changed) - len(better) - len(worse),
        "gone": [_named(key) for key in before if key not in after],
        "new": [_named(key) for key in after if key not in before],
    }


def _rows(document: Json) -> dict[tuple[str, str], Json]:
    # the one that stands for a class may be another one in the other network
    return {(row["set"], row["failure"]): row for row in document["rows"] if "equal" not in row}


def _named(key: tuple[str, str]) -> Json:
    return {"set": key[0], "failure": key[1]}


def _change(key: tuple[str, str], before: Json, after: Json) -> Json:
    """``by``: the difference of the worst pair's part; of the mean part where that is equal."""
    by = after["left"] - before["left"]
    if abs(by) <= _SAME:
        by = after["mean"] - before["mean"]
    return {
        **_named(key),
        "by": by,
        "before": {name: before[name] for name in ("left", "mean", "pair", "cut")},
        "after": {name: after[name] for name in ("left", "mean", "pair", "cut")},
    }


def _summary(one: Json | None) -> Json | None:
    return one and {name: one[name] for name in ("left", "mean_left", "mean", "cut", "harmless")}
