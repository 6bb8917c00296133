"""Neighbors on one LAN: each of them carries what the link does, all of them no more than it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping

Sessions = tuple[int, ...]
"""The numbers of sessions with one router, ascending."""
Lans = Mapping[int, int]
"""By session, its interface, where others have the same."""


def lans_of(interfaces: Mapping[int, int]) -> dict[int, int]:
    """Return the sessions, with their interfaces, that are not alone there."""
    some = [*interfaces.values()]
    if len(set(some)) == len(some):
        return {}
    return {number: one for number, one in interfaces.items() if some.count(one) > 1}


def capacity_of(numbers: Iterable[int], links: Mapping[int, float], lans: Lans) -> float:
    """Return C of several sessions: each link once. Infinite where one is unknown."""
    each = {lans.get(number, -number): number for number in numbers} if lans else None
    return sum([links.get(one, math.inf) for one in (each.values() if each else numbers)])


def on_lans(
    carried: Mapping[Sessions, float], links: Mapping[int, float], lans: Lans
) -> tuple[dict[Sessions, float], frozenset[int]]:
    """Return what routers carry beside each other, in bytes/s, and the links that limit it.

    Of a link that all of them would exceed, each gets a part in proportion to what it carries.
    """
    loads: dict[int, float] = {}
    most: dict[int, float] = {}
    for numbers, value in carried.items():
        for number, part in _parts(numbers, value, links):
            if number in lans and number in links:
                loads[lans[number]] = loads.get(lans[number], 0.0) + part
                most[lans[number]] = links[number]
    factors = {one: most[one] / load for one, load in loads.items() if load > most[one]}
    found = {
        numbers: sum(
            [
                part * factors.get(lans.get(number, 0), 1.0)
                for number, part in _parts(numbers, value, links)
            ]
        )
        if leads_over(numbers, lans, factors.keys())
        else value
        for numbers, value in carried.items()
    }
    return found, frozenset(factors)


def leads_over(numbers: Sessions, lans: Lans, links: Collection[int]) -> bool:
    """Whether one of the sessions is over one of these links to LANs."""
    return any(lans.get(number) in links for number in numbers)


def _parts(
    numbers: Sessions, value: float, links: Mapping[int, float]
) -> Iterator[tuple[int, float]]:
    """Divide what a router carries among its sessions, in proportion to their links."""
    whole = sum([links.get(number, math.inf) for number in numbers])
    for number in numbers:
        if math.isinf(whole) or not whole:
            yield number, value / len(numbers)
        else:
            yield number, value * links[number] / whole
