"""OSPF's part of the documents that all protocols share: interfaces, neighbors, LSAs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

from fared.management.documents.schema.link import InterfaceFacts, NeighborFacts


class InterfaceEntry(InterfaceFacts):
    """One interface. ``state`` is a term of RFC 2328 §9.1.

    It is Down, Loopback, Point-to-point, Waiting, DR Other, Backup or DR. The designated
    routers are interface addresses, None where there are none. ``ttl_security``: off, tx-only, on.
    """

    designated_router: str | None
    designated_router_hostname: str | None
    backup_designated_router: str | None
    backup_designated_router_hostname: str | None
    ttl_security: str


class MtuMismatch(TypedDict):
    """The MTU that a neighbor states and the one of our interface, bytes."""

    neighbor: int
    own: int


class NeighborEntry(NeighborFacts):
    """One neighbor. ``state`` is that of RFC 2328 §10.1 (``Full``); the lists are lengths (§10).

    ``mtu_mismatch``: the database exchange has not passed and the MTUs differ, which keeps a
    neighbor in ExStart (or Exchange) forever unless the smaller side has ``mtu-ignore``.
    ``waits_for``: it waits in 2-Way while so many adjacencies form (``adjacency-stagger``); else
    null. ``bfd``: the state of its BFD session, None without one.
    """

    retransmission_list: int
    request_list: int
    summary_list: int
    waits_for: int | None
    mtu_mismatch: MtuMismatch | None
    bfd: str | None


class DatabaseLsa(TypedDict):
    """One LSA, with the field names of ``fared-decode/1``.

    ``type`` is the decoder's name (``router``, ``te-link``...), ``hostname`` that of the
    advertising router; ``body`` only where LSAs were requested by ``id``.
    """

    type: str
    id: str
    adv_router: str
    hostname: str | None
    seq: int
    age: int
    checksum: int
    length: int
    self_originated: bool
    body: NotRequired[dict[str, Any]]


class DatabaseArea(TypedDict):
    """The LSAs of one area; ``checksum`` as in ``AreaStatus``."""

    area: str
    type: str
    checksum: str
    lsas: Sequence[DatabaseLsa]
