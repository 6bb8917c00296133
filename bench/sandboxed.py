"""Measuring in a sandbox: namespaces and processes are gone when it ends, however it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent / "build" / "bench"


def possible() -> bool:
    """Return whether namespaces can be made here."""
    from fared.extensions.lab import sandbox

    return sandbox.problem() is None


def measured(name: str, measure: Callable[[], object]) -> Any | None:  # noqa: ANN401
    """Return what ``measure`` found in a sandbox; None if it failed there.

    Results are JSON. They stay in ``build/bench/NAME.json``.
    """
    from fared.extensions.lab import sandbox

    target = RESULTS / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)

    def work() -> int:
        target.write_text(json.dumps(measure()))
        return 0

    sandbox.run(work)
    return json.loads(target.read_text()) if target.exists() else None


def measured_rows(name: str, measure: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the rows of a section; none without namespaces.

    Raises RuntimeError if the measurement failed.
    """
    if not possible():
        return []
    found: list[dict[str, Any]] | None = measured(name, measure)
    if found is None:
        raise RuntimeError(f"{name}: no result; see above")
    return found
