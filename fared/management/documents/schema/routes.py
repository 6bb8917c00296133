"""Documents of routes, weights, and their explanation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from fared.management.documents.schema.common import BytesPerSecond, JsonDocument


class NextHopFacts(TypedDict):
    """A next hop in any document: ``bandwidth`` of the local link, ``capacity`` of the path."""

    interface: str
    address: str | None
    """None where the next hop needs no gateway address."""
    neighbor: str
    hostname: str | None
    bandwidth: BytesPerSecond
    capacity: BytesPerSecond


class RouteNextHop(NextHopFacts):
    """``weight`` as in the kernel."""

    weight: int
    share: float


class RouteEntry(TypedDict):
    """``type`` is intra-area, inter-area, external-1, external-2, level-1 or level-2.

    ``protocol`` (ospf, isis) is the source of the route, ``preference`` that of the protocol: of
    several routes to a prefix the lower one wins. ``area`` is ``level-1`` or ``level-2`` with
    IS-IS. ``connected``: this router itself advertises the prefix; ``redistributed``: as an
    external one. ``discard``: an active area range; packets without a longer match are dropped,
    without next hop. ``tag``: the external route tag of OSPF (0: no tag), or the first
    administrative tag of IS-IS (RFC 5130); None: it has no such field.
    """

    prefix: str
    protocol: str
    preference: int
    metric: int
    type: str
    area: str | None
    connected: bool
    redistributed: bool
    discard: bool
    tag: int | None
    nexthops: list[RouteNextHop]


class Routes(JsonDocument):
    """``show routes``; argument ``prefix`` optional: only that one, or for an address the best.

    Arguments ``af`` (ipv4, ipv6) and ``proto`` (ospf, isis) narrow the list. With ``proto`` all
    routes of that protocol are shown, also those that another protocol's route overrides.
    """

    root: str
    af: str
    """The listed families: ipv4, ipv6 or both."""
    routes: Sequence[RouteEntry]


class WeightMember(NextHopFacts):
    """``wanted_share`` follows the capacities exactly, ``share`` the integer weights.

    ``error`` = share / wanted_share - 1 (0 where nothing was wanted).
    """

    weight: int
    wanted_share: float
    share: float
    ecmp_share: float
    error: float


class AdaptedMember(TypedDict):
    """The shares of a next hop: target, present, and programmed."""

    interface: str
    address: str | None
    target: float
    relaxed: float
    programmed: float


class AdaptationState(TypedDict):
    """How a weight vector follows load.

    ``loop_gain`` is rho / (1 - rho) for rho the load of its paths over their capacity, None
    where nothing is left; undamped weights oscillate above 1. While equalising it is rho.
    ``fallback`` is the reason why shares approach the capacities instead: ``saturated``, ``stale``
    or ``unknown``, None where they follow load.
    """

    loop_gain: float | None
    fallback: str | None
    members: list[AdaptedMember]


class AdaptationLoop(TypedDict):
    """The loop that all vectors share, in seconds; ``time_constant`` 0 is undamped."""

    loop_delay: float
    time_constant: float
    dead_band: float
    period: float


class AnnounceState(TypedDict):
    """The budget of announced changes of load in an area or level, and our share of it.

    ``budget`` and ``share`` are announcements a second, ``own_ends`` and ``all_ends`` the link ends
    that share it: those that both ends advertise, of reachable routers. A change of more than
    ``threshold`` of the capacity is announced; loads are averaged over ``averaging`` seconds.
    ``deferred`` LSAs or LSPs wait for the share; ``announced`` is their number since the start.
    ``joining``: the share is reduced while the database is being learned.
    """

    protocol: str
    area: str
    budget: float
    share: float
    own_ends: int
    all_ends: int
    threshold: float
    averaging: float
    deferred: int
    announced: int
    joining: bool


class WeightVector(TypedDict):
    """One distinct set of weighted next hops and the routes that share it.

    ``prefixes`` counts them, ``examples`` are the first three; ``quantization_error`` is the
    throughput lost to integer weights, as a ratio.
    """

    protocol: str
    af: str
    prefixes: int
    examples: list[str]
    destinations: list[str]
    granularity: str
    """What takes one path: flow, flowlet or packet."""
    quantization_error: float
    members: list[WeightMember]
    adaptation: AdaptationState | None
    """None unless weights follow load."""


class Weights(JsonDocument):
    """``show weights``; argument ``prefix`` optional: the vector of that route only.

    Arguments ``af`` and ``proto`` as of ``Routes``.
    """

    root: str
    metric: str
    """none, capacity, available or equalise."""
    flows: int | None
    """The number of large flows for which weights avoid small paths; None: proportional weights."""
    adaptation: AdaptationLoop | None
    """None unless weights follow load."""
    announcements: list[AnnounceState]
    vectors: list[WeightVector]


LimitingLink = TypedDict(
    "LimitingLink",
    {
        "from": str,
        "from_hostname": str | None,
        "to": str,
        "to_hostname": str | None,
        "capacity": BytesPerSecond,
    },
)
"""The link that bounds a path capacity: a wider link would increase it."""


class ExplainNextHop(NextHopFacts):
    """One next hop with the reason of its weight, in numbers and as a sentence (``reason``)."""

    limiting_link: LimitingLink | None
    """None where the capacity is unknown, or is bounded by several links together."""
    weight: int
    share: float
    ecmp_share: float
    reason: str


class Explain(JsonDocument):
    """``explain PREFIX`` (argument ``prefix``, or an address): the derivation of a route.

    Argument ``proto`` optional: of that protocol's route, used or not.
    """

    root: str
    prefix: str
    protocol: str
    preference: int
    metric: int
    type: str
    area: str | None
    connected: bool
    discard: bool
    destinations: list[dict[str, str | None]]
    """The routers that advertise the prefix and were chosen: ``{"id", "hostname"}``."""
    nexthops: list[ExplainNextHop]
    weights: str
    """The basis of weights: none, capacity, available or equalise."""
    granularity: str
    """What takes one path: flow, flowlet or packet."""
    summary: str
    """The explanation in one or two sentences."""
    last_change: dict[str, Any] | None
    """``{"at": UnixTime, "causes": [text]}`` of the last change to this route."""
