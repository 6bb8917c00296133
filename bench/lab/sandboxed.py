"""Measuring in a sandbox: namespaces and processes are gone when it ends, however it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bench import OUTPUT
from fared.extensions.lab import sandbox


def possible() -> bool:
    """Return whether namespaces can be made here."""
    return sandbox.problem() is None


def measured(name: str, measure: Callable[[], object]) -> Any | None:  # noqa: ANN401
    """Return what ``measure`` found in a sandbox; None if it failed there.

    Results are JSON. They stay in ``build/bench/NAME.json``.
    """
    target = OUTPUT / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)

    def work() -> int:
        target.write_text(json.dumps(measure()))
        return 0

    sandbox.run(work)
    return json.loads(target.read_text()) if target.exists() else None


def required(name: str, measure: Callable[[], object]) -> Any:  # noqa: ANN401
    """Return what ``measured`` does. Raises RuntimeError if the measurement failed."""
    found = measured(name, measure)
    if found is None:
        raise RuntimeError(f"{name}: no result; see above")
    return found


def skipped() -> dict[str, Any] | None:
    """Return a row that says why nothing can be measured here; None if it can."""
    reason = sandbox.problem()
    return None if reason is None else {"name": f"skipped: {reason}"}


def measured_rows(name: str, measure: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the rows of a section; none without namespaces.

    Raises RuntimeError if the measurement failed.
    """
    if not possible():
        return []
    found: list[dict[str, Any]] = required(name, measure)
    return found
