"""Rows of the report that set one figure beside another."""

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
    """A row whose ratio is above 1 where fared is ahead; ``least`` is the ratio that is the goal.

    Without one of both figures there is no ratio, and a goal is missed.
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
