"""The document of a replay."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import asdict

from fared.core.ids import format_node
from fared.management.documents.recordings import FirstDifference, Replay
from fared.management.recording.digests import state_digests
from fared.management.recording.player import Played, play


def replayed(directory: Path, *, until: str, trust: bool) -> tuple[Played, Replay]:
    """Replay a recording; return the outcome and its document.

    Raises RecordingError, ValueError for a wrong ``until``.
    """
    played = play(directory, until=until, trust=trust)
    router, differs = played.router, played.difference
    digests = state_digests(router, played.now)
    return played, Replay(
        directory=str(directory),
        version=played.began.version,
        python=played.began.python,
        recorded_at=played.began.wall,
        begins="router" if played.new_router else "state",
        segment=played.segment,
        calls=played.call,
        seconds=played.now - played.began.now,
        until=until or None,
        reached=played.reached if until else None,
        equal=differs is None if played.compared else None,
        confirmed=played.confirmed,
        difference=None if differs is None else FirstDifference(**asdict(differs)),
        raised=played.raised,
        events=dict(sorted(played.events.items())),
        router_id=format_node(router.solver.root),
        hostname=router.settings.hostname,
        neighbors=router.progress().full,
        routes=len(router.table.routes),
        databases_digest=digests.databases.hex(),
        routes_digest=digests.routes.hex(),
        test=None,
    )
