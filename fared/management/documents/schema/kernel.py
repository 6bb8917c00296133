"""The document of the kernel's forwarding table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from fared.management.documents.schema.common import JsonDocument


class FibNextHop(TypedDict):
    """A next-hop object; ``discard``: it drops packets, and ``interface`` is empty."""

    id: int
    interface: str
    address: str | None
    onlink: bool
    discard: bool


class FibMember(TypedDict):
    """A member of a group."""

    nexthop_id: int
    interface: str
    address: str | None
    weight: int


class FibGroup(TypedDict):
    """A next-hop group and how many routes use it."""

    id: int
    type: str
    routes: int
    members: list[FibMember]


class FibRoute(TypedDict):
    """A route and the object (next hop or group) it points at."""

    prefix: str
    nexthop_id: int


class FibDifference(TypedDict):
    """``object`` is route, group or nexthop; ``wanted`` and ``found`` None where it is absent."""

    object: str
    key: str
    wanted: str | None
    found: str | None


class FibDocument(JsonDocument):
    """``show fib``: the state that the daemon has programmed into the kernel.

    Argument ``diff`` true: ``diff`` instead of lists, the differences from a fresh dump of the
    kernel.
    """

    table: int
    protocol: int
    metric: int
    nexthops: NotRequired[list[FibNextHop]]
    groups: NotRequired[Sequence[FibGroup]]
    routes: NotRequired[Sequence[FibRoute]]
    diff: NotRequired[list[FibDifference]]
