"""An IS-IS database as a file: what ``fared-cli spf --lsdb`` reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from fared.management.documents.schema.common import BytesPerSecond


class IsisLsdbAdjacency(TypedDict):
    """A neighbor that is up in a level, and the addresses that next hops have there."""

    neighbor: str
    level: int
    ipv4: str | None
    ipv6: str | None


class IsisLsdbInterface(TypedDict):
    """A circuit as the offline SPF needs it."""

    name: str
    type: str
    ifindex: int
    addresses: list[str]
    metric: int
    bandwidth: BytesPerSecond
    adjacencies: list[IsisLsdbAdjacency]


class IsisLsdbLsp(TypedDict):
    """A whole LSP as on the wire, with its remaining lifetime at the time of the document."""

    level: int
    hex: str


class IsisLsdb(TypedDict):
    """``show lsdb`` of a router that runs IS-IS."""

    format: str
    proto: str
    system_id: str
    levels: list[int]
    interfaces: list[IsisLsdbInterface]
    lsps: Sequence[IsisLsdbLsp]
