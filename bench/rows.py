"""Rows of the report that compare two figures."""

from __future__ import annotations

from typing import Any


def compared(
    name: str,
    ours: float | None,
    other: float | None,
    unit: str,
    least: float | None = None,
    *,
    more_is_better: bool = False,
) -> dict[str, Any]:
    """Return a row whose ratio is above 1 if fared is ahead; ``least``: the ratio to reach.

    If either figure is missing, the row has no ratio, and its goal is missed.
    """
    ratio = None
    if ours and other:
        ratio = ours / other if more_is_better else other / ours
    return {
        "name": name,
        "ours": ours,
        "other": other,
        "unit": unit,
        "ratio": ratio,
        "goal": None if least is None else f">= {least:g}x",
        "met": None if least is None else ratio is not None and ratio >= least,
    }
