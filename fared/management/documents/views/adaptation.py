"""The part of ``show weights`` for weights that follow load (available mode)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents.context import ViewContext, finite, gateway
from fared.management.documents.weights import (
    AdaptationLoop,
    AdaptationState,
    AdaptedMember,
    AnnounceState,
)
from fared.router.instance import longest_average

if TYPE_CHECKING:
    from fared.core.ids import Prefix
    from fared.paths.rib.adapted import AdaptedRoutes
    from fared.paths.rib.model import NextHopSet


def _adapted(context: ViewContext, prefix: Prefix) -> AdaptedRoutes | None:
    if not context.router.adaptation.running:
        return None
    return context.instance_of(prefix).adapted.get(prefix.family)


def vector_of(context: ViewContext, prefix: Prefix) -> int | None:
    """Return the key of a prefix's vector, which distinguishes equal weights; None without load."""
    adapted = _adapted(context, prefix)
    return None if adapted is None else adapted.vector(prefix)


def programmed_shares(context: ViewContext, prefix: Prefix, hops: NextHopSet) -> list[float] | None:
    """Return the shares behind the integer weights; None where weights follow capacities."""
    adapted = _adapted(context, prefix)
    found = None if adapted is None else adapted.state(prefix)
    if found is None:
        return None
    shares = dict(zip(found[0], found[1].programmed.tolist(), strict=True))
    return [shares.get(hop.hop_key, 0.0) for hop in hops.hops]


def loop(context: ViewContext) -> AdaptationLoop | None:
    """Return the loop that all vectors share; None unless weights follow load."""
    if not context.router.adaptation.running:
        return None
    settings = context.router.settings.solver.adaptation
    instances = context.router.instances.values()
    averaging = max((longest_average(instance.engine) for instance in instances), default=0.0)
    return AdaptationLoop(
        loop_delay=round(settings.loop_delay + averaging / 2, 3),
        time_constant=round(settings.tau * settings.slowed(averaging), 3),
        dead_band=settings.dead_band,
        period=settings.period,
    )


def announcements(context: ViewContext) -> list[AnnounceState]:
    """Return the budgets of announced loads, and our share of each."""
    return [
        AnnounceState(
            protocol=name,
            area=area,
            budget=budget.budget,
            share=round(budget.share(context.now), 3),
            own_ends=budget.ends.shared[0],
            all_ends=budget.ends.shared[1],
            threshold=round(budget.threshold, 4),
            averaging=round(budget.averaging, 1),
            deferred=budget.waiting,
            announced=budget.spent,
            joining=budget.ends.joining(context.now),
        )
        for name, instance in context.router.instances.items()
        for area, budget in instance.engine.budgets.items()
    ]


def state(context: ViewContext, prefix: Prefix) -> AdaptationState | None:
    """Return the state of a prefix's vector; None unless weights follow load."""
    adapted = _adapted(context, prefix)
    found = None if adapted is None else adapted.state(prefix)
    if found is None:
        return None
    hops, vector = found
    gain = finite(vector.loop_gain)
    names = {link.ifindex: link.name for link in context.links.values()}
    shares = (vector.target.tolist(), vector.smoothed.tolist(), vector.programmed.tolist())
    return AdaptationState(
        loop_gain=None if gain is None else round(gain, 3),
        fallback=vector.fallback,
        members=[
            AdaptedMember(
                interface=names.get(ifindex, str(ifindex)),
                address=gateway(family, address),
                target=round(target, 6),
                relaxed=round(smoothed, 6),
                programmed=round(programmed, 6),
            )
            for (ifindex, family, address, _), target, smoothed, programmed in zip(
                hops, *shares, strict=True
            )
        ],
    )
