"""Documents of what was computed: routes, weights, and why."""

from __future__ import annotations

from typing import Any, TypedDict

from fared.api.schema.common import BytesPerSecond, Document


class RouteNextHop(TypedDict):
    """``bandwidth`` of the local link, ``capacity`` of the whole path; ``weight`` as in the kernel."""

    interface: str
    address: str | None
    """None where the next hop needs no gateway address."""
    neighbor: str
    hostname: str | None
    bandwidth: BytesPerSecond
    capacity: BytesPerSecond
    weight: int
    share: float


class Route(TypedDict):
    """``type`` is intra-area, inter-area, external-1, external-2, level-1 or level-2.

    ``protocol`` (ospf, isis) is where it comes from, ``preference`` that of the protocol: where
    several know a prefix the lower one wins. ``area`` is ``level-1`` or ``level-2`` with IS-IS.
    ``connected``: this router itself announces the prefix; ``redistributed``: as one of other origin.
    ``discard``: an active area range; what has no longer match is dropped, there is no next hop.
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
    nexthops: list[RouteNextHop]


class Routes(Document):
    """``show routes``; argument ``prefix`` optional: only that one, or for an address the best.

    Arguments ``af`` (ipv4, ipv6) and ``proto`` (ospf, isis) narrow the list. With ``proto`` all
    routes of that protocol are shown, those that lose to the other one as well.
    """

    root: str
    af: str
    """ipv4, ipv6 or both: the families that are listed."""
    routes: list[Route]


class WeightMember(TypedDict):
    """``wanted_share`` follows the capacities exactly, ``share`` the integer weights.

    ``error`` = share / wanted_share - 1 (0 where nothing was wanted).
    """

    interface: str
    address: str | None
    neighbor: str
    hostname: str | None
    bandwidth: BytesPerSecond
    capacity: BytesPerSecond
    weight: int
    wanted_share: float
    share: float
    ecmp_share: float
    error: float


class AdaptedMember(TypedDict):
    """The shares of a next hop: what load asks for, how far it has come, what is programmed."""

    interface: str
    address: str | None
    target: float
    relaxed: float
    programmed: float


class AdaptationState(TypedDict):
    """How a weight vector follows load.

    ``loop_gain`` is rho / (1 - rho) for rho the load of its paths over their capacity, None
    where nothing is left; undamped weights swing above 1. While equalising it is rho. ``fallback`` says why shares go to
    the capacities instead: ``saturated``, ``stale`` or ``unknown``, None where they do not.
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
    quantization_error: float
    members: list[WeightMember]
    adaptation: AdaptationState | None
    """None unless weights follow load."""


class Weights(Document):
    """``show weights``; argument ``prefix`` optional: the vector of that route only.

    Arguments ``af`` and ``proto`` as of ``Routes``.
    """

    root: str
    metric: str
    """none, capacity, available or equalise."""
    flows: int | None
    """The number of large flows for which weights lean away from small paths; None: they do not."""
    adaptation: AdaptationLoop | None
    """None unless weights follow load."""
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
"""The link that bounds a path capacity: where a repair would help."""


class ExplainNextHop(TypedDict):
    """One next hop and why it has its weight, in numbers and as a sentence (``reason``)."""

    interface: str
    address: str | None
    neighbor: str
    hostname: str | None
    bandwidth: BytesPerSecond
    capacity: BytesPerSecond
    limiting_link: LimitingLink | None
    """None where the capacity is unknown, or is bounded by several links together."""
    weight: int
    share: float
    ecmp_share: float
    reason: str


class Explain(Document):
    """``explain PREFIX`` (argument ``prefix``, or an address): why the route is as it is.

    Argument ``proto`` optional: why that protocol's route is as it is, used or not.
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
    """The routers that announce the prefix and were chosen: ``{"id", "hostname"}``."""
    nexthops: list[ExplainNextHop]
    weights: str
    """none, capacity, available or equalise: what the weights follow."""
    summary: str
    """The whole in one or two sentences."""
    last_change: dict[str, Any] | None
    """``{"at": UnixTime, "causes": [text]}`` of the last change to this route."""
