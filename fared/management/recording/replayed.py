"""The document of a replay, ``fared-replay/1``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from fared.core.ids import format_node
from fared.management.recording.digests import state_digests
from fared.management.recording.player import Played, play


def replayed(directory: Path, *, until: str, trust: bool) -> tuple[Played, dict[str, Any]]:
    """Replay a recording; return the outcome and its document.

    Raises RecordingError, ValueError for a wrong ``until``.
    """
    played = play(directory, until=until, trust=trust)
    return played, {
        "format": "fared-replay/1",
        "directory": str(directory),
        "version": played.began.version,
        "python": played.began.python,
        "recorded_at": played.began.wall,
        "begins": "router" if played.new_router else "state",
        "segment": played.segment,
        "calls": played.call,
        "seconds": played.now - played.began.now,
        "until": until or None,
        "reached": played.reached if until else None,
        "equal": played.difference is None if played.compared else None,
        "confirmed": played.confirmed,
        "difference": None if played.difference is None else asdict(played.difference),
        "raised": played.raised,
        "events": dict(sorted(played.events.items())),
        **_state(played),
        "test": None,
    }


def _state(played: Played) -> dict[str, Any]:
    router = played.router
    digests = state_digests(router, played.now)
    return {
        "router_id": format_node(router.solver.root),
        "hostname": router.settings.hostname,
        "neighbors": router.progress().full,
        "routes": len(router.table.routes),
        "databases_digest": digests.databases.hex(),
        "routes_digest": digests.routes.hex(),
    }
