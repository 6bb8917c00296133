"""Why a router on a link is no neighbor: its hellos that were refused, by interface and source.

The last refusal of a source is kept for some minutes, with its cause, unless a hello of it is
accepted. ``CAUSES`` explains the causes of both protocols, and what else keeps a neighbor from
being used, each by the code that counters and logs have for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

import msgspec

KEPT = 300.0
"""Seconds for which a refusal is kept after the last hello."""
_SOURCES = 16
"""Sources kept for an interface; they are easily forged."""

_OF_BOTH = {  # RFC 2328 §8.2, §10.5; ISO 10589 §8.2, §8.4
    "area-mismatch": "it is in another area",
    "network-type-mismatch": "one end is point-to-point, the other is broadcast",
    "second-neighbor": "another neighbor is on this point-to-point link",
    "too-many-neighbors": "the link has as many neighbors as it may have",
    "auth": "its authentication fails",
}
_OF_OSPF = {
    "duplicate-router-id": "another router has our router id",
    "duplicate-address": "it has our address",
    "own-address": "its address is one of ours",
    "router-id-zero": "its router id is 0.0.0.0",
    "network-mask-mismatch": "its network mask differs",
    "hello-interval-mismatch": "its hello interval differs",
    "dead-interval-mismatch": "its dead interval differs",
    "options-mismatch": "one end is in a stub area, the other is not",
    "neighbor-address": "its address has changed, and the former one may still be in use",
    "lls-block": "the signature of its link-local options fails",
    "auth-type": "its type of authentication differs",
    "auth-key": "its key is none of ours",
    "auth-digest": "its digest is wrong",
    "auth-sequence": "its sequence number is old: it may be replayed",
    "destination": "its hello is not sent to AllSPFRouters",
    "unicast": "it sends to our address, with a TTL that may come from beyond the link",
    "ttl": "its TTL is not that of a packet of this link",
    "source-network": "its address is not on our network",
    "other-subnet": "it is in another of our subnets than the neighbors that we have here",
}
_OF_ISIS = {
    "duplicate-system-id": "another router has our system id",
    "holding-time": "its holding time is 0",
    "mtu-too-small": "our MTU is too small for our LSPs (lsp-mtu)",
    "level-mismatch": "it has no level in common with us",
    "circuit-type": "its hello is of a level that it does not list",
    "no-common-topology": "it has no topology in common with us",
    "no-common-protocol": "it has no network layer protocol in common with us",
    "three-way-state": "its three-way state is invalid",
    "three-way-mismatch": "it names another neighbor, or another circuit of ours",
}
_OF_NO_REFUSAL = {  # but no neighbor to use either
    "not-heard": "it does not list us: our hellos are lost on their way, or it refuses them",
    "bfd-down": "BFD is not up, without which there is no adjacency here (strict)",
    "mtu-mismatch": "its MTU differs",
    "topology-mismatch": "only one end has multi-topology: IPv6 has no adjacency",
}
CAUSES: Mapping[str, str] = MappingProxyType(_OF_BOTH | _OF_OSPF | _OF_ISIS | _OF_NO_REFUSAL)
OSPF_REFUSALS, ISIS_REFUSALS = (*_OF_BOTH, *_OF_OSPF), (*_OF_BOTH, *_OF_ISIS)
"""The causes for which each protocol refuses a hello that it could decode."""


Differs = tuple[object, object] | None
"""The values of the neighbor and of this router that differ."""


def explain(cause: str, differs: Differs = None) -> str:
    """Return the sentence for a cause, with the values that differ; of others, the code."""
    text = CAUSES.get(cause, f"it is malformed ({cause})")
    return text if differs is None else f"{text}: {differs[0]}, ours {differs[1]}"


class NeighborProblem(msgspec.Struct, frozen=True):
    """What keeps a known neighbor from being used: code and sentence."""

    cause: str
    text: str


class RefusedHello(msgspec.Struct, frozen=True):
    """The last refused hello of a source: when, why, and how many since the first; times in s.

    ``node``: the router id or system id in it, formatted; None if it was not read.
    """

    interface: str
    source: str
    node: str | None
    cause: str
    text: str
    first: float
    last: float
    times: int


class Refusing(Protocol):
    """The interface that refuses a hello."""

    @property
    def ifindex(self) -> int:
        """Its index."""

    @property
    def name(self) -> str:
        """Its name."""


class _KeptRefusal(msgspec.Struct):
    """The same as it is kept: what is shown is made of it when somebody asks."""

    interface: str
    node: str | None
    cause: str
    differs: Differs
    first: float
    last: float
    times: int


class Refusals:
    """The refusals of all interfaces. ``show`` formats the address of a source."""

    def __init__(self, show: Callable[[int], str]) -> None:
        self._show = show
        self._known: dict[int, dict[int, _KeptRefusal]] = {}

    def add(
        self,
        link: Refusing,
        source: int,
        why: tuple[str, Differs],
        now: float,
        node: str | None = None,
    ) -> None:
        """Keep a refusal; of too many sources, the one that came first is dropped."""
        cause, differs = why
        known = self._known.get(link.ifindex)
        if known is None:
            known = self._known[link.ifindex] = {}
        found = known.get(source)
        if found is None or found.cause != cause or now - found.last > KEPT:
            known.pop(source, None)
            if len(known) >= _SOURCES:
                del known[next(iter(known))]
            known[source] = _KeptRefusal(link.name, node, cause, differs, now, now, 1)
            return
        found.node, found.differs, found.last = node, differs, now
        found.times += 1

    def accepted(self, ifindex: int, source: int, node: str) -> None:
        """A hello of this source was accepted: no other address of its router matters any more."""
        known = self._known.get(ifindex)
        if known:
            for at in [at for at, item in known.items() if at == source or item.node == node]:
                del known[at]

    def forget(self, ifindex: int) -> None:
        """The protocol no longer runs on an interface."""
        self._known.pop(ifindex, None)

    def kept(self, now: float) -> tuple[RefusedHello, ...]:
        """The refusals of the last minutes, by interface."""
        return tuple(
            [
                self._shown(source, item)
                for _, known in sorted(self._known.items())
                for source, item in known.items()
                if now - item.last <= KEPT
            ]
        )

    def _shown(self, source: int, item: _KeptRefusal) -> RefusedHello:
        return RefusedHello(
            item.interface,
            self._show(source),
            item.node,
            item.cause,
            explain(item.cause, item.differs),
            item.first,
            item.last,
            item.times,
        )
