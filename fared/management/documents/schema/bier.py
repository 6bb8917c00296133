"""The document of ``show bier``."""

from __future__ import annotations

from typing import TypedDict

from fared.management.documents.schema.common import JsonDocument


class BierNextHop(TypedDict):
    """A BFR neighbor toward a BFER, and the number of tables of 16 in which it is the one.

    ``neighbor`` is null for a host.
    """

    interface: str
    neighbor: str | None
    hostname: str | None
    address: str | None
    weight: int
    tables: int


class Bfer(TypedDict):
    """A BFER: ``set`` and ``bit`` (from 0) are its place in bit strings.

    ``local``: this router. ``host``: a host of this router. ``problem``: why it is not reached.
    """

    bfr_id: int
    prefix: str
    hostname: str | None
    set: int
    bit: int
    local: bool
    host: bool
    nexthops: list[BierNextHop]
    problem: str


class BfrNeighborEntry(TypedDict):
    """A BFR neighbor, the BFERs that any table has behind it, and copies sent to it.

    ``problem``: why it gets none, though it runs BIER; empty if it may.
    """

    interface: str
    neighbor: str | None
    hostname: str | None
    address: str | None
    bfr_ids: str
    packets: int
    bytes: int
    problem: str


class BiftMask(TypedDict):
    """A neighbor of a table, its F-BM in hexadecimal, and the BFR-ids in it."""

    interface: str
    neighbor: str | None
    hostname: str | None
    f_bm: str
    bfr_ids: str


class BiftEntry(TypedDict):
    """One table of a set; ``entropy``: the low bits of the entropy that select it, ``0-3,8``."""

    set: int
    bift_id: int
    entropy: str
    local: str
    masks: list[BiftMask]


class BierPackets(TypedDict):
    """Packets since the table is in the kernel.

    ``received`` here or sent by this router; ``delivered`` to it; dropped because the TTL
    ``expired``, the BIFT-id is ``unknown``, or the header ``malformed``.
    """

    received: int
    delivered: int
    expired: int
    unknown: int
    malformed: int


class Bier(JsonDocument):
    """``show bier``; all values are empty if BIER does not run (``enabled``).

    ``bit_string_length`` is in bits. ``problem``: why packets are not forwarded.
    ``by_process``: the daemon forwards, since nftables is missing. ``bift``: the tables were asked
    for.
    """

    enabled: bool
    sub_domain: int
    bfr_id: int
    bit_string_length: int
    problem: str
    by_process: bool
    bfers: list[Bfer]
    neighbors: list[BfrNeighborEntry]
    bifts: list[BiftEntry]
    packets: BierPackets
    bift: bool
