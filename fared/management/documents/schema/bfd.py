"""The document of ``show bfd``."""

from __future__ import annotations

from typing import TypedDict

from fared.management.documents.schema.common import JsonDocument, Seconds


class BfdProcessFacts(TypedDict):
    """The process ``fared-bfd``; ``pid`` None: it does not run.

    ``priority`` in words, ``starts`` counts; ``reported``: age of the counters below.
    ``spare``: the process that is ready to take its place, None: there is none at present.
    """

    pid: int | None
    spare: int | None
    priority: str
    starts: int
    reported: Seconds | None


class BfdSessionEntry(TypedDict):
    """One session; ``since``: in its present state.

    ``transmit_interval`` is before jitter; ``detection_time`` 0: unknown yet. ``neighbor_*`` are
    values that the neighbor announced. ``late`` counts timers that fired late in this router,
    ``extended`` the detection times extended for it.
    """

    interface: str
    neighbor: str
    local: str
    protocols: list[str]
    state: str
    neighbor_state: str
    diagnostic: str
    neighbor_diagnostic: str
    since: Seconds
    strict: bool
    authenticated: bool
    local_discriminator: int
    neighbor_discriminator: int
    source_port: int
    transmit_interval: Seconds
    detection_time: Seconds
    min_tx: Seconds
    min_rx: Seconds
    multiplier: int
    neighbor_min_tx: Seconds
    neighbor_min_rx: Seconds
    neighbor_multiplier: int
    sent: int
    received: int
    discarded: dict[str, int]
    ups: int
    downs: int
    late: int
    worst_late: Seconds
    extended: int


class Bfd(JsonDocument):
    """``show bfd``; ``process`` None: no interface uses BFD.

    ``discarded``: packets of no session, by reason. ``detail``: all values were asked for.
    """

    process: BfdProcessFacts | None
    discarded: dict[str, int]
    sessions: list[BfdSessionEntry]
    detail: bool
