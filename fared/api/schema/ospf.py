"""What OSPF adds to the documents of the protocols: interfaces, neighbors, LSAs."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from fared.api.schema.link import InterfaceFacts, NeighborFacts


class Interface(InterfaceFacts):
    """One interface. ``state`` is the RFC's word.

    That is Down, Loopback, Point-to-point, Waiting, DR Other, Backup or DR. The designated
    routers are interface addresses, None where there are none.
    """

    designated_router: str | None
    designated_router_hostname: str | None
    backup_designated_router: str | None
    backup_designated_router_hostname: str | None


class Neighbor(NeighborFacts):
    """One neighbor. ``state`` is the RFC's word (``Full``); the lists are lengths (§10)."""

    retransmission_list: int
    request_list: int
    summary_list: int


class DatabaseLsa(TypedDict):
    """One LSA, with the field names of ``fared-decode/1``.

    ``type`` is the word of the decoder (``router``, ``te-link``...), ``hostname`` that of the
    advertising router; ``body`` only where one LSA was asked for by ``id``.
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
    lsas: list[DatabaseLsa]
