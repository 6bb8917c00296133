"""What every protocol reports of its links and neighbors: capacity, keys, refused hellos."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from fared.management.documents.context import ViewContext, finite
from fared.management.documents.interface import AuthenticationStatus
from fared.management.documents.link import LagMembers
from fared.management.documents.neighbor import ProblemEntry, RefusedHelloEntry
from fared.management.documents.protocol_status import FloodingStatus, FloodingTopologyStatus
from fared.protocols.igp.keys import accept_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fared.core.link_facts import PlatformLink
    from fared.core.timers import Timer
    from fared.paths.te.advertise import AdvertisedLink
    from fared.protocols.igp import refusals
    from fared.protocols.igp.dynamic_flooding import TopologyView
    from fared.protocols.igp.keys import Keyring, TimedKey
    from fared.protocols.igp.reduction import ReductionSettings
    from fared.router.instance import ProtocolInstance


def link_facts(context: ViewContext, link: AdvertisedLink[Any]) -> dict[str, Any]:
    """Return the fields of ``InterfaceFacts`` that do not depend on the protocol."""
    name, kernel = link.name, context.links.get(link.ifindex)
    utilized = context.runtime.utilized.get(link.ifindex)
    bandwidth = finite(link.bandwidth.capacity)
    available = None
    up = kernel is not None and kernel.up
    if not up:
        utilized = None
    if bandwidth is not None and utilized is not None:
        available = max(0.0, bandwidth - utilized)
    source, facts = None, context.platform.link(name)
    if context.config.interface_bandwidth(name) is not None:
        source = "config"
    elif kernel is not None and bandwidth is not None:
        shaped = kernel.shaped is not None and kernel.capacity == kernel.shaped
        known = facts is not None and facts.speed is not None
        speed = context.platform.name if known else "speed"
        source = "shaper" if shaped else speed
    return {
        "interface": name,
        "ifindex": link.ifindex,
        "mtu": link.link.mtu,
        "up": up,
        "bandwidth": bandwidth,
        "bandwidth_source": source,
        "utilized": utilized,
        "available": available,
        "health": context.link_health(name),
        "derated": list(context.derated(name)),
        "delay": link.settings.delay,
        "lag": _lag(facts),
    }


def _lag(facts: PlatformLink | None) -> LagMembers | None:
    """Return the members of a LAG, where the platform knows them."""
    if facts is None or facts.members is None:
        return None
    enabled, members = facts.members
    return LagMembers(enabled=enabled, members=members, min_links=facts.min_links)


def announced_available(link: AdvertisedLink[Any]) -> float | None:
    """Return the available bandwidth that is advertised, None for unknown."""
    return finite(link.advertised.bandwidth.available if link.advertised else None)


def problem_shown(problem: refusals.NeighborProblem | None) -> ProblemEntry | None:
    """Return why a neighbor is not used."""
    return None if problem is None else ProblemEntry.of(problem)


def unready_neighbor(where: str, problem: refusals.NeighborProblem | None) -> str:
    """Return why a neighbor is not ready; empty: that is not known."""
    return "" if problem is None else f"{where}: {problem.text}"


def refused_hellos(context: ViewContext) -> list[RefusedHelloEntry]:
    """Return the hellos refused in the last minutes."""
    return [row for each in context.instances for row in refused_by(each, context.now)]


def refused_by(instance: ProtocolInstance, now: float) -> list[RefusedHelloEntry]:
    """Return those that one protocol has refused."""
    return [
        RefusedHelloEntry.of(
            item,
            proto=instance.name,
            router_id=item.node,
            first=round(now - item.first, 3),
            last=round(now - item.last, 3),
        )
        for item in instance.engine.refused(now)
    ]


def by_interface(rows: Iterable[RefusedHelloEntry]) -> defaultdict[str, list[RefusedHelloEntry]]:
    """Group refused hellos by interface."""
    found: defaultdict[str, list[RefusedHelloEntry]] = defaultdict(list)
    for row in rows:
        found[row.interface].append(row)
    return found


def due_in(timer: Timer | None, now: float) -> float | None:
    """Return the seconds until a timer fires; None: it will not."""
    return timer.deadline - now if timer is not None and timer.active else None


def flooding_status(
    reduction: ReductionSettings,
    topologies: tuple[TopologyView, ...],
    scope: Callable[[int], str],
    name: Callable[[int], str],
) -> FloodingStatus:
    """Return how flooding is reduced; ``scope`` names areas or levels, ``name`` routers."""
    return FloodingStatus(
        reduction=reduction.mode.value,
        delay=reduction.delay,
        topologies=[
            FloodingTopologyStatus(
                scope=scope(view.scope),
                leader=None if view.leader is None else name(view.leader),
                routers=view.routers,
                parents=[name(router) for router in view.parents],
                children=[name(router) for router in view.children],
                others=[name(router) for router in view.others],
            )
            for view in topologies
        ],
    )


def keys_shown(
    keyring: Keyring, chosen: TimedKey | None, wall: float
) -> AuthenticationStatus | None:
    """Return which key signs (``chosen``) and which are accepted, without any secret.

    None: packets are not authenticated.
    """
    if not keyring:
        return None
    return AuthenticationStatus(
        algorithm=None if chosen is None else chosen.key.algorithm.value,
        key_id=None if chosen is None else chosen.key.key_id,
        extended=chosen is not None and chosen.key.extended,
        expired=chosen is not None and not chosen.sends(wall),
        accepted_key_ids=[timed.key.key_id for timed in accept_keys(keyring, wall)],
    )
