"""What IS-IS adds to the documents of the protocols: circuits, adjacencies, LSPs."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from fared.api.schema.common import Seconds
from fared.api.schema.link import InterfaceFacts, NeighborFacts


class Lan(TypedDict):
    """One level of a broadcast circuit.

    ``dis`` is the LAN id that the designated IS gave it (``0102.5500.0004.02``), None while
    nobody is elected.
    """

    level: int
    dis: str | None
    hostname: str | None
    is_dis: bool


class Interface(InterfaceFacts):
    """One circuit. ``state`` is Down, Loopback, Point-to-point, LAN, or DIS where we are that.

    ``cost`` is the metric, ``dead_interval`` the holding time that our hellos tell. ``pending``
    LSPs are still to be sent or acknowledged.
    """

    levels: list[int]
    circuit_id: int
    hello_multiplier: int
    pending: int
    lans: list[Lan]


class Neighbor(NeighborFacts):
    """One adjacency. ``state`` is Initializing or Up; ``uptime`` None until it is up.

    ``levels`` are those in use, ``holding_time`` what its hellos tell, ``areas`` its area
    addresses (``49.0001``), ``topologies`` MT ids (RFC 5120).
    """

    system_id: str
    levels: list[int]
    snpa: str
    holding_time: Seconds
    areas: list[str]
    addresses: list[str]
    topologies: list[int]
    extended_circuit_id: int | None


class DatabaseLsp(TypedDict):
    """One LSP, with the field names of ``fared-decode/1``.

    ``type`` is lsp or pseudonode; ``lifetime`` what remains of it now, seconds; ``length`` in
    bytes. ``purged``: it was taken back and only its header is kept. ``body`` (the whole PDU as
    decoded) only where LSPs were asked for by ``id``.
    """

    type: str
    lsp_id: str
    hostname: str | None
    seq: int
    lifetime: int
    checksum: int
    length: int
    overload: bool
    attached: bool
    partition_repair: bool
    purged: bool
    self_originated: bool
    body: NotRequired[dict[str, Any]]


class DatabaseLevel(TypedDict):
    """The LSPs of one level (``level-1``); ``checksum``: sum of those of live LSPs."""

    level: str
    checksum: str
    lsps: list[DatabaseLsp]
