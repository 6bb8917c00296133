"""The kernel's forwarding objects and the operations on them, as values.

``FibState`` is both the result of a dump of the kernel and the planner's installed state.
``KernelFib`` (or the simulated kernel) applies operations in order and answers each one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol

import msgspec

from fared.core.ids import Prefix, format_address
from fared.paths.rib.model import HopKey


class Member(NamedTuple):
    """A member of a group: next-hop object id and weight 1..65535."""

    nexthop_id: int
    weight: int


class PutNextHop(msgspec.Struct, frozen=True):
    """Create or replace the next-hop object ``nexthop_id``."""

    kind: ClassVar[str] = "put-nexthop"
    nexthop_id: int
    hop: HopKey

    def __str__(self) -> str:
        """As it stands in the log."""
        ifindex, family, gateway, _ = self.hop
        where = (
            f"{format_address(family, gateway)} on interface {ifindex}" if ifindex else "discard"
        )
        return f"put next hop {self.nexthop_id}: {where}"


class PutGroup(msgspec.Struct, frozen=True):
    """Create or atomically replace group ``group_id``; ``replace``: the group should exist."""

    kind: ClassVar[str] = "put-group"
    group_id: int
    members: tuple[Member, ...]
    replace: bool
    resilient: bool = False

    def __str__(self) -> str:
        """As it stands in the log."""
        members = ", ".join(
            f"{member.nexthop_id} weight {member.weight}" for member in self.members
        )
        return f"put group {self.group_id}: {members}"


class PutRoute(msgspec.Struct, frozen=True):
    """Create or replace a route pointing at a next-hop object or group."""

    kind: ClassVar[str] = "put-route"
    prefix: Prefix
    nexthop_id: int

    def __str__(self) -> str:
        """As it stands in the log."""
        return f"put route {self.prefix}: next hop {self.nexthop_id}"


class DeleteRoute(msgspec.Struct, frozen=True):
    """Remove a route of ours."""

    kind: ClassVar[str] = "delete-route"
    prefix: Prefix

    def __str__(self) -> str:
        """As it stands in the log."""
        return f"delete route {self.prefix}"


class DeleteGroup(msgspec.Struct, frozen=True):
    """Remove a group that no route uses any more."""

    kind: ClassVar[str] = "delete-group"
    group_id: int

    def __str__(self) -> str:
        """As it stands in the log."""
        return f"delete group {self.group_id}"


class DeleteNextHop(msgspec.Struct, frozen=True):
    """Remove a next-hop object that no group or route uses any more."""

    kind: ClassVar[str] = "delete-nexthop"
    nexthop_id: int

    def __str__(self) -> str:
        """As it stands in the log."""
        return f"delete next hop {self.nexthop_id}"


FibOperation = PutNextHop | PutGroup | PutRoute | DeleteRoute | DeleteGroup | DeleteNextHop


class FibState(msgspec.Struct):
    """Next hops, groups and routes of ours, by id and prefix.

    ``resilient`` are the ids of resilient groups (the type of a group cannot change), ``reserved``
    the ids of our range that other programs use: those are never touched. ``taken`` are the
    prefixes whose place another program's route took from ours.
    """

    nexthops: dict[int, HopKey] = msgspec.field(default_factory=dict)
    groups: dict[int, tuple[Member, ...]] = msgspec.field(default_factory=dict)
    routes: dict[Prefix, int] = msgspec.field(default_factory=dict)
    resilient: set[int] = msgspec.field(default_factory=set)
    reserved: set[int] = msgspec.field(default_factory=set)
    taken: set[Prefix] = msgspec.field(default_factory=set)


def deletions(state: FibState) -> list[FibOperation]:
    """Return what removes all objects, routes first: the kernel deletes them with a group."""
    return [
        *map(DeleteRoute, state.routes),
        *map(DeleteGroup, state.groups),
        *map(DeleteNextHop, state.nexthops),
    ]


class ForeignChanges(msgspec.Struct, frozen=True):
    """What other programs did to our objects, by the kernel's notifications.

    ``deleted`` and ``changed`` are ids of next hops and groups, ``routes`` those that were deleted
    or changed, ``taken`` the prefixes whose place another program's route took.
    """

    deleted: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()
    routes: tuple[Prefix, ...] = ()
    taken: tuple[Prefix, ...] = ()


class OperationResult(msgspec.Struct, frozen=True):
    """The kernel's answer; ``error`` 0 is success, otherwise an errno with its message."""

    operation: FibOperation
    error: int = 0
    message: str = ""


class ForwardingTable(Protocol):
    """A FIB that executes operations: the kernel's, or a simulation of it."""

    def apply(self, operations: Sequence[FibOperation]) -> list[OperationResult]:
        """Execute in order; a failure does not stop the rest. One answer for each operation."""

    def dump(self) -> FibState:
        """Return all of our objects that exist now."""
