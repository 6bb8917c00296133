"""IS-IS's part of the documents that all protocols share: circuits, adjacencies, LSPs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

from fared.management.documents.schema.common import Seconds
from fared.management.documents.schema.link import InterfaceFacts, NeighborFacts


class Lan(TypedDict):
    """One level of a broadcast circuit.

    ``dis`` is the LAN id that the designated IS assigned (``0102.5500.0004.02``), None while none
    is elected.
    """

    level: int
    dis: str | None
    hostname: str | None
    is_dis: bool


class InterfaceEntry(InterfaceFacts):
    """One circuit. ``state`` is Down, Loopback, Point-to-point, LAN, or DIS if we are the DIS.

    ``cost`` is the metric, ``dead_interval`` the holding time in our hellos. ``pending`` LSPs are
    still to be sent or acknowledged.
    """

    levels: list[int]
    circuit_id: int
    hello_multiplier: int
    pending: int
    lans: list[Lan]


class FloodingSpeed(TypedDict):
    """How fast a neighbor receives LSPs (RFC 9681), None where it does not say.

    ``transmission_interval`` in microseconds, ``psnp_interval`` in milliseconds.
    """

    burst_size: int | None
    transmission_interval: int | None
    lsps_per_psnp: int | None
    psnp_interval: int | None
    receive_window: int | None


class NeighborEntry(NeighborFacts):
    """One adjacency. ``state`` is Initializing or Up; ``uptime`` None until it is up.

    ``levels`` are those in use, ``holding_time`` that in its hellos, ``areas`` its area addresses
    (``49.0001``), ``topologies`` MT ids (RFC 5120). ``flooding``: None if its hellos have no
    flooding parameters. ``bfd``: the state of its BFD sessions by address family (``ipv4``,
    ``ipv6``).
    """

    system_id: str
    levels: list[int]
    snpa: str
    holding_time: Seconds
    areas: list[str]
    addresses: list[str]
    topologies: list[int]
    extended_circuit_id: int | None
    flooding: FloodingSpeed | None
    bfd: dict[str, str]


class DatabaseLsp(TypedDict):
    """One LSP, with the field names of ``fared-decode/1``.

    ``type`` is lsp or pseudonode; ``lifetime`` the remaining lifetime, seconds; ``length`` in
    bytes. ``purged``: only its header is kept. ``body`` (the whole PDU as decoded) only if LSPs
    were requested by ``id``.
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
    """The LSPs of one level (``level-1``); ``checksum``: sum of the checksums of live LSPs."""

    level: str
    checksum: str
    lsps: Sequence[DatabaseLsp]
