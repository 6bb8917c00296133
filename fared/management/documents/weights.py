"""``show weights``: the distinct vectors of weights, and how they follow load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from fared.management.documents import human
from fared.management.documents.cells import Columns, dim
from fared.management.documents.declare import AF, PREFIX, Answer, Document
from fared.management.documents.explain import SlowerHop, show_slower
from fared.management.documents.facts import Facts, Ratio, Seconds
from fared.management.documents.routes import NextHopFacts

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class WeightMember(NextHopFacts):
    """``wanted_share`` follows the capacities exactly, ``share`` the integer weights.

    ``error`` = share / wanted_share - 1 (0 where nothing was wanted).
    """

    weight: int
    wanted_share: Ratio
    share: Ratio
    ecmp_share: Ratio
    error: Ratio


class AdaptedMember(Facts):
    """The shares of a next hop: target, present, and programmed."""

    interface: str
    address: str | None
    target: Ratio
    relaxed: Ratio
    programmed: Ratio


class AdaptationState(Facts):
    """How a weight vector follows load.

    ``loop_gain`` is rho / (1 - rho) for rho the load of its paths over their capacity, None
    where nothing is left; undamped weights oscillate above 1. While equalising it is rho.
    ``fallback`` is the reason why shares approach the capacities instead: ``saturated``, ``stale``
    or ``unknown``, None where they follow load.
    """

    loop_gain: float | None
    fallback: str | None
    members: list[AdaptedMember]


class AdaptationLoop(Facts):
    """The loop that all vectors share, in seconds; ``time_constant`` 0 is undamped."""

    loop_delay: Seconds
    time_constant: Seconds
    dead_band: Ratio
    period: Seconds

    def __str__(self) -> str:
        damping = f"time constant {self.time_constant:g} s" if self.time_constant else "undamped"
        return f"loop delay {self.loop_delay:g} s, {damping}"


class AnnounceState(Facts):
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
    threshold: Ratio
    averaging: Seconds
    deferred: int
    announced: int
    joining: bool

    def __str__(self) -> str:
        text = (
            f"{self.protocol} {self.area}: {self.share:.3g} of {self.budget:g} "
            f"announcements/s ({self.own_ends} of {self.all_ends} link ends)\n"
            f"  threshold {human.share(self.threshold)}"
        )
        if self.averaging:
            text += f", loads averaged over {self.averaging:.3g} s"
        if self.deferred:
            text += f", {self.deferred} deferred"
        return text + (", joining" if self.joining else "")


class WeightVector(Facts):
    """One distinct set of weighted next hops and the routes that share it.

    ``prefixes`` counts them, ``examples`` are the first three; ``granularity``: what takes one
    path, flow, flowlet or packet; ``quantization_error`` is the throughput lost to integer weights;
    ``adaptation`` None: weights do not follow load; ``slower`` as in ``explain``.
    """

    protocol: str
    af: str
    prefixes: int
    examples: list[str]
    destinations: list[str]
    granularity: str
    quantization_error: Ratio
    members: list[WeightMember]
    adaptation: AdaptationState | None
    slower: list[SlowerHop] | UnsetType = UNSET


class DelayChoice(Facts):
    """How delays choose next hops: ``delay-margin``, ``delay-bound``, ``unknown-delay``."""

    margin: Seconds | None
    bound: Seconds | None
    unknown: Seconds

    def __str__(self) -> str:
        margin, bound = human.duration(self.margin), human.duration(self.bound)
        parts = [
            f"at most {margin} above the lowest" if self.margin else "the lowest only",
            f"{bound} at most where there are such",
        ]
        shown = (self.margin is not None, self.bound is not None)
        return ", ".join(part for part, wanted in zip(parts, shown, strict=True) if wanted)


class Weights(Answer, tag="fared-weights/1"):
    """``show weights``; argument ``prefix`` optional: the vector of that route only.

    Arguments ``af`` and ``proto`` as of ``Routes``. ``metric`` is none, capacity, available or
    equalise. ``flows``: the number of large flows for which weights avoid small paths; None:
    proportional weights. ``adaptation`` None: weights do not follow load. ``delay`` is left out
    where it chooses no next hops.
    """

    root: str
    metric: str
    flows: int | None
    adaptation: AdaptationLoop | None
    announcements: list[AnnounceState]
    vectors: list[WeightVector]
    delay: DelayChoice | UnsetType = UNSET

    def show(self, paper: Paper) -> None:
        """Print each vector, after what all follow."""
        leaning = f", skewed away from small paths for {self.flows} flows"
        paper.line(dim(f"weights follow: {self.metric}{leaning if self.flows is not None else ''}"))
        if self.adaptation is not None:
            paper.line(dim(str(self.adaptation)))
        if self.delay is not UNSET:
            paper.line(dim(f"next hops by path delay: {self.delay}"))
        for area in self.announcements:
            paper.line(dim(str(area)))
        paper.rates()
        for vector in self.vectors:
            _show_vector(vector, paper)


def _show_vector(vector: WeightVector, paper: Paper) -> None:
    more = vector.prefixes - len(vector.examples)
    title = ", ".join(vector.examples) + (f" and {more} more" if more else "")
    granularity = vector.granularity
    paper.heading(title if granularity == "flow" else f"{title}, by {granularity}")
    paper.table(vector.members, _MEMBERS)
    show_slower(vector.slower, paper)
    if vector.quantization_error:
        lost = human.share(vector.quantization_error)
        paper.line(dim(f"{lost} of the throughput lost to integer weights"))
    if vector.adaptation is not None:
        names = {(hop.interface, hop.address): hop.name for hop in vector.members}
        named: Columns = {"Neighbor": lambda m: names.get((m.interface, m.address), "")}
        paper.table(vector.adaptation.members, {**named, **_ADAPTED})
        paper.line(dim(_gain(vector.adaptation)))


def _gain(adaptation: AdaptationState) -> str:
    gain, why = adaptation.loop_gain, adaptation.fallback
    shown = "without bound" if gain is None else f"{gain:.2f}"
    return f"loop gain {shown}" + (f", back to capacities: {why}" if why else "")


_MEMBERS: Columns = {
    "Neighbor": "name",
    "Interface": "via",
    ">Path": "capacity",
    ">Weight": "weight",
    ">Share": "share",
    ">Wanted": "wanted_share",
    ">Error": "error",
    ">ECMP": "ecmp_share",
}
_ADAPTED: Columns = {
    "Interface": "interface",
    ">Target": "target",
    ">Relaxed": "relaxed",
    ">Programmed": "programmed",
}
"""Target shares, present shares, and programmed weights."""

DOCUMENT = Document(
    Weights,
    "routes:weights",
    "Path capacities and the weights computed from them.",
    (PREFIX, AF),
    narrowed=True,
)
