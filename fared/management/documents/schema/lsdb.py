"""The OSPF database as a file, which ``fared-cli spf --lsdb`` reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from fared.management.documents.schema.common import BytesPerSecond


class LsdbNeighbor(TypedDict):
    """A full neighbor, as the next hop needs it."""

    router_id: str
    address: str


class LsdbInterface(TypedDict):
    """An interface as the offline SPF needs it."""

    name: str
    area: str
    type: str
    ifindex: int
    addresses: list[str]
    unnumbered: bool
    cost: int
    bandwidth: BytesPerSecond
    neighbors: list[LsdbNeighbor]


class LsdbLsa(TypedDict):
    """A whole LSA as on the wire, with its age when the document was made."""

    hex: str
    age: int


class LsdbArea(TypedDict):
    """The LSAs of one area."""

    area: str
    stub: bool
    lsas: Sequence[LsdbLsa]


Lsdb = TypedDict(
    "Lsdb",
    {
        "format": str,
        "proto": str,
        "router_id": str,
        "interfaces": list[LsdbInterface],
        "areas": list[LsdbArea],
        "as": Sequence[LsdbLsa],
    },
)
"""``show lsdb`` of OSPF: the file that ``fared-cli spf --lsdb`` reads.

Argument ``proto``: ``ospf`` or ``isis``; if both run and it is not given, OSPF.
"""
