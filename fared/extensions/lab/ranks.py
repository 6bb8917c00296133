"""Ranks of traffic and collectives: a host, or one GPU of a server, by name.

A host with one link is a rank by its own name. A server has a NIC for each GPU, and ``g1.3`` is
the third: its NICs count from 1, in the order of the file. A list of ranks (``--hosts``) may also
name a server, for all its GPUs, and has patterns: ``g*.3`` is the third GPU of every server.

GPUs of one server reach each other inside it (NVLink). What they send each other does not enter
the fabric: it takes no time here, and counts in no bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Interface, IPv6Network

from fared.extensions.lab.addressing import AddressPlan, NodePlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.port import PortAddresses

Pair = tuple[str, str]
"""A sending and a receiving rank."""

_GPU = re.compile(r"(.+)\.([1-9][0-9]{0,4})")
_WILD = frozenset("*?[")
_TOLD = 8


@dataclass(frozen=True)
class Rank:
    """A rank: its canonical name, and its NIC, the host's end of a link."""

    name: str
    nic: PortAddresses

    @property
    def host(self) -> str:
        """The node in whose namespace it sends and receives."""
        return self.nic.node

    @property
    def leaf(self) -> str:
        """The router that its NIC is linked to."""
        return self.nic.peer

    def address(self, *, ipv6: bool = False) -> IPv4Address | IPv6Address:
        """Return the address that it sends from. Raises LabError if it has none."""
        return (self._address6 if ipv6 else self.nic.address).ip

    def prefix(self, *, ipv6: bool = False) -> IPv4Network | IPv6Network:
        """Return the subnet of its address. Raises LabError if it has none."""
        return (self._address6 if ipv6 else self.nic.address).network

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The subnets of its addresses, as texts: IPv4, and IPv6 where IS-IS runs."""
        families = (False,) if self.nic.address6 is None else (False, True)
        return tuple(str(self.prefix(ipv6=ipv6)) for ipv6 in families)

    @property
    def gateway(self) -> IPv4Address:
        """The address of its leaf."""
        return self.nic.peer_address

    @property
    def _address6(self) -> IPv6Interface:
        if self.nic.address6 is None:
            raise LabError(f"{self.name} has no IPv6 address: IPv6 is routed where IS-IS runs")
        return self.nic.address6


def rank_of(plan: AddressPlan, name: str) -> Rank:
    """Return the rank of that name. Raises LabError."""
    host, number = _split(plan, name)
    nics = plan.node(host).ports
    if not plan.node(host).node.is_host or not nics:
        raise LabError(f"{host} is not a host with a link")
    if number is None and len(nics) > 1:
        raise LabError(f"{host} has {len(nics)} NICs: name one of {host}.1 to {host}.{len(nics)}")
    if number is not None and number > len(nics):
        has = "one NIC" if len(nics) == 1 else f"{len(nics)} NICs"
        raise LabError(f"{host} has {has}: there is no {name}")
    return _ranks(plan.node(host))[(number or 1) - 1]


def all_ranks(plan: AddressPlan) -> tuple[Rank, ...]:
    """Return the ranks of a fabric: host by host, in the order of the file."""
    return tuple(rank for host in plan.hosts for rank in _ranks(host))


def ranks_at(plan: AddressPlan, leaf: str) -> tuple[Rank, ...]:
    """Return the ranks behind a router."""
    return tuple(rank for rank in all_ranks(plan) if rank.leaf == leaf)


def read_ranks(plan: AddressPlan, text: str | None) -> tuple[str, ...]:
    """Return the names that a list means, in its order; None is all. Raises LabError."""
    if text is None:
        return tuple(rank.name for rank in all_ranks(plan))
    return tuple(name for word in text.split(",") for name in _meant(plan, word.strip()))


def crossing(plan: AddressPlan, sizes: Mapping[Pair, int]) -> dict[Pair, int]:
    """Return the transfers of a step that cross the fabric: those between different hosts."""
    return {
        (source, target): size
        for (source, target), size in sizes.items()
        if rank_of(plan, source).host != rank_of(plan, target).host
    }


def check_ranks(plan: AddressPlan, names: Iterable[str], *, apart: bool = False) -> None:
    """Raise LabError unless these are different ranks, not all of one host; ``apart``: no two."""
    ranks = [rank_of(plan, name) for name in names]
    if len(ranks) < 2 or len({rank.name for rank in ranks}) < len(ranks):
        raise LabError("a job requires at least two different hosts or GPUs")
    by_host: dict[str, str] = {}
    for rank in ranks:
        other = by_host.setdefault(rank.host, rank.name)
        if apart and other != rank.name:
            raise LabError(f"{other} and {rank.name} are in one server: choose one GPU of each")
    if len(by_host) < 2:
        raise LabError(f"all ranks are GPUs of {ranks[0].host}: nothing crosses the fabric")


def _ranks(host: NodePlan) -> tuple[Rank, ...]:
    if len(host.ports) == 1:
        return (Rank(host.name, host.ports[0]),)
    return tuple(Rank(f"{host.name}.{n}", nic) for n, nic in enumerate(host.ports, 1))


def _split(plan: AddressPlan, name: str) -> tuple[str, int | None]:
    """Return host and number of a NIC; the name of a node may end in a number as well."""
    gpu = _GPU.fullmatch(name)
    if name in plan.nodes or gpu is None or gpu[1] not in plan.nodes:
        return name, None
    return gpu[1], int(gpu[2])


def _meant(plan: AddressPlan, word: str) -> Iterator[str]:
    if _WILD.isdisjoint(word):
        node = plan.nodes.get(word)
        server = node is not None and node.node.is_host and len(node.ports) > 1
        found = _ranks(node) if node is not None and server else (rank_of(plan, word),)
    else:
        found = tuple(rank for rank in all_ranks(plan) if fnmatchcase(rank.name, word))
        if not found:
            names = [rank.name for rank in all_ranks(plan)]
            more = [] if len(names) <= _TOLD else ["..."]
            raise LabError(f"no rank matches {word!r}: {', '.join(names[:_TOLD] + more)}")
    return (rank.name for rank in found)
