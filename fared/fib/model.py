"""The kernel's forwarding objects and the operations on them, as values.

``FibState`` is both what a dump of the kernel returns and what the planner believes is there;
the kernel room (or the simulated kernel) applies operations in order and answers each one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from fared.core.ids import Prefix
from fared.rib.model import HopKey


class Member(NamedTuple):
    """A member of a group: next-hop object id and weight 1..65535."""

    nexthop_id: int
    weight: int


@dataclass(frozen=True, slots=True)
class PutNextHop:
    """Create or replace the next-hop object ``nexthop_id``."""

    nexthop_id: int
    hop: HopKey


@dataclass(frozen=True, slots=True)
class PutGroup:
    """Create or atomically replace group ``group_id``. ``replace``: the planner knows it exists."""

    group_id: int
    members: tuple[Member, ...]
    replace: bool
    resilient: bool = False


@dataclass(frozen=True, slots=True)
class PutRoute:
    """Create or replace a route pointing at a next-hop object or group."""

    prefix: Prefix
    nexthop_id: int


@dataclass(frozen=True, slots=True)
class DeleteRoute:
    """Remove a route of ours."""

    prefix: Prefix


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Remove a group that no route uses any more."""

    group_id: int


@dataclass(frozen=True, slots=True)
class DeleteNextHop:
    """Remove a next-hop object that no group or route uses any more."""

    nexthop_id: int


FibOperation = PutNextHop | PutGroup | PutRoute | DeleteRoute | DeleteGroup | DeleteNextHop


@dataclass(slots=True)
class FibState:
    """Next hops, groups and routes of ours, by id and prefix.

    ``resilient`` names the groups that are resilient ones (the type of a group cannot change),
    ``reserved`` ids of our range that somebody else took: those are never touched.
    """

    nexthops: dict[int, HopKey] = field(default_factory=dict)
    groups: dict[int, tuple[Member, ...]] = field(default_factory=dict)
    routes: dict[Prefix, int] = field(default_factory=dict)
    resilient: set[int] = field(default_factory=set)
    reserved: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The kernel's answer; ``error`` 0 is success, otherwise an errno with its message."""

    operation: FibOperation
    error: int = 0
    message: str = ""


class ForwardingTable(Protocol):
    """What carries operations out: the kernel, or a simulation of it."""

    def apply(self, operations: Sequence[FibOperation]) -> list[OperationResult]:
        """Carry out in order; one failing does not stop the rest. One answer an operation."""

    def dump(self) -> FibState:
        """Everything of ours that is there now."""
