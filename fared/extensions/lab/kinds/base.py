"""The interface of a node kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fared.extensions.lab.addressing import NodePlan

_FIVE_TUPLE = 0x37


@dataclass(frozen=True)
class Command:
    """A program to run in a node.

    The next command of the node waits until ``ready`` exists, or, where ``lasting`` is false,
    until the program has ended well.
    """

    name: str
    arguments: tuple[str, ...]
    ready: Path | None = None
    lasting: bool = True


class NodeKind(Protocol):
    """Configures, starts and operates nodes of one kind. Kinds hold no state."""

    account: str | None
    """That its programs change to by themselves, and which needs their files."""

    def missing(self) -> str | None:
        """Return the names of missing programs, or None."""

    def sysctls(self, plan: NodePlan) -> Mapping[str, object]:
        """Return the network sysctls the lab sets before anything starts."""

    def files(self, plan: NodePlan, directory: Path) -> Mapping[str, str]:
        """Return the generated configuration: file name in the node's directory to text."""

    def commands(self, plan: NodePlan, directory: Path) -> Sequence[Command]:
        """Return the commands to run, in order."""

    def cli(self, directory: Path, arguments: Sequence[str]) -> list[str]:
        """Return the operator's tool of the node with these arguments. Raises LabError."""


class KernelOnly:
    """What kinds without a daemon have in common."""

    account: str | None = None

    def missing(self) -> str | None:
        """Return None: the kernel is sufficient."""
        return None

    def files(self, plan: NodePlan, directory: Path) -> Mapping[str, str]:
        """Return nothing: there is no configuration."""
        del plan, directory
        return {}

    def commands(self, plan: NodePlan, directory: Path) -> Sequence[Command]:
        """Return nothing: no daemon runs."""
        del plan, directory
        return ()


def router_sysctls(plan: NodePlan) -> dict[str, object]:
    """Return the sysctls of a router whose daemon does not set them.

    Every node gets its own multipath hash seed: namespaces of one host share the kernel's secret,
    and a fabric whose tiers all select alike uses only one link of each tier.
    """
    six = ipv6_sysctls() if plan.node.ipv6 else {}
    return {
        **six,
        "ipv4.ip_forward": 1,
        **hash_sysctls("ipv4"),
        "ipv4.fib_multipath_hash_seed": plan.hash_seed,
        "ipv4.nexthop_compat_mode": 0,
        "ipv4.igmp_max_memberships": 4096,
        "ipv4.conf.all.rp_filter": 0,
        "ipv4.conf.default.rp_filter": 0,
    }


def hash_sysctls(family: str) -> dict[str, object]:
    """Return the sysctls for hashing addresses, protocol and ports: policy 3, 5-tuple.

    Policy 1 uses a hash that the packet already has, and on veths packets of a TCP socket of the
    same machine have one: all tiers would select alike, and a flow would change its path with every
    retransmission timeout. On wires neither happens.
    """
    return {
        f"{family}.fib_multipath_hash_fields": _FIVE_TUPLE,
        f"{family}.fib_multipath_hash_policy": 3,
    }


def ipv6_sysctls() -> dict[str, object]:
    """Return the sysctls of an IPv6 router; on a veth addresses need no duplicate detection."""
    return {
        "ipv6.conf.all.forwarding": 1,
        "ipv6.conf.default.forwarding": 1,
        **hash_sysctls("ipv6"),
        "ipv6.conf.all.accept_dad": 0,
        "ipv6.conf.default.accept_dad": 0,
    }
