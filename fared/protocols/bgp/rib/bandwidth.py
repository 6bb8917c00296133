"""What the chosen paths to a prefix carry (draft-ietf-idr-fare): bytes/s, infinite for no limit.

A neighbor n carries the lesser of C(n), the links to it, and B(n), what it announces. Several
sessions with one router count together, and its bandwidth is divided among them. Neighbors whose
paths all pass through one router carry no more together than it does (``shared``), and those on one
LAN no more than the link to it (``lans``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from fared.protocols.bgp.rib.decision import PeerPath
from fared.protocols.bgp.rib.lans import Lans, capacity_of, leads_over, on_lans
from fared.protocols.bgp.rib.paths import OWN
from fared.protocols.bgp.rib.shared import (
    Chain,
    SharedPart,
    common,
    reached,
    shared_parts,
    told,
)

_ALL: Final = 1 - 1e-6
"""Part of a total that counts as all of it: a value on the wire has single precision."""
_NO_LANS: Final[Lans] = MappingProxyType({})
Shares = dict[tuple[int, ...], float]
"""By the numbers of sessions with one router, ascending: the limit B of what they carry."""


class PathBandwidth(NamedTuple):
    """The shares of neighbors, and what all of them carry; None: nothing to announce.

    ``parts``: neighbors that carry less together than alone. ``chain``: routers that all paths pass
    through, to be named to others. ``free``: what load leaves of the limits of shares, where
    it is less; ``available``: the same of the total, None: all of it, or unknown. ``lans``: links
    to LANs that carry less than the neighbors there. ``speakers``: the routers at the other ends.
    """

    shares: Shares
    total: float | None
    parts: tuple[SharedPart, ...] = ()
    chain: Chain = ()
    free: Shares = {}  # noqa: RUF012
    available: float | None = None
    lans: frozenset[int] = frozenset()
    speakers: frozenset[tuple[int, int]] = frozenset()


def path_bandwidth(
    chosen: Sequence[PeerPath],
    links: Mapping[int, float],
    availables: Mapping[int, float] | None = None,
    lans: Lans = _NO_LANS,
    exits: Sequence[int] | None = None,
) -> PathBandwidth:
    """Return what chosen paths carry; ``links`` are C by session, without those unknown.

    ``availables``: what load leaves of them, None: load does not count. ``lans``: the interface of
    sessions that share it. ``exits``: by which sessions, or other exits, the paths lead.
    """
    if chosen and chosen[0].peer.number <= OWN:
        own = chosen[0].path.bandwidth
        return PathBandwidth({}, math.inf if own is None else own)
    exits = [one.peer.number for one in chosen] if exits is None else exits
    speakers, equal = _by_speaker(chosen, exits)
    found = {
        tuple(sorted(numbers)): min(known, default=math.inf)
        for numbers, known, _ in speakers.values()
    }
    if equal:
        # RFC 10005 §4: equally, and there is no value to announce (draft-ietf-bess-ebgp-dmz)
        return PathBandwidth(_equal(found, links), None)
    if found and not any(found.values()):
        # RFC 10005 §3.2: all zero, by local policy equally
        return PathBandwidth(_equal(found, links), 0.0)
    carried = {
        numbers: min(limit, capacity_of(numbers, links, lans)) for numbers, limit in found.items()
    }
    limiting = frozenset[int]()
    if lans:
        carried, limiting = on_lans(carried, links, lans)
        # a limit that each of its links alone does not have
        found.update({one: most for one, most in carried.items() if _less(one, most, links)})
    named = {tuple(sorted(numbers)): told(chains) for numbers, _, chains in speakers.values()}
    parts = shared_parts(carried, named)
    together = {sessions for part in parts for sessions in part.members}
    alone = [value for sessions, value in carried.items() if sessions not in together]
    total = sum([*alone, *[part.total for part in parts]]) if carried else None
    ways = [
        reached(chain, capacity_of(sessions, links, lans))
        for sessions, chain in named.items()
        if carried[sessions] > 0
    ]
    ends = frozenset([one.peer.speaker for one in chosen])
    made = PathBandwidth(found, total, parts, common(ways), lans=limiting, speakers=ends)
    if availables is None:
        return made
    return _loaded(made, zip(chosen, exits, strict=True), carried, {**links, **availables}, lans)


def _by_speaker(
    chosen: Sequence[PeerPath], exits: Sequence[int]
) -> tuple[dict[tuple[int, int], tuple[list[int], list[float], list[Chain]]], bool]:
    """Return exits, bandwidths and limits by router, and whether a missing value makes all equal.

    An exit is of the router that is the first to lead there.
    """
    speakers: dict[tuple[int, int], tuple[list[int], list[float], list[Chain]]] = {}
    equal = False
    by_exit: dict[int, tuple[int, int]] = {}
    for (peer, path, _), number in zip(chosen, exits, strict=True):
        speaker = by_exit.setdefault(number, peer.speaker)
        numbers, known, chains = speakers.setdefault(speaker, ([], [], []))
        if number not in numbers:
            numbers.append(number)
        chains.append(path.limits)
        if path.bandwidth is not None:
            known.append(path.bandwidth)
        elif peer.missing == "ecmp":
            equal = True
    return speakers, equal


def _loaded(
    made: PathBandwidth,
    chosen: Iterable[tuple[PeerPath, int]],
    carried: Shares,
    availables: Mapping[int, float],
    lans: Lans,
) -> PathBandwidth:
    """Return it with what load leaves.

    Of a limit that neighbors share, the same part is left as of what they carry: none of them says
    whether load is before that router or behind it.
    """
    told: dict[int, float] = {}
    for (_, path, _), number in chosen:
        if path.available is not None:
            told[number] = min(path.available, told.get(number, math.inf))
    free = {
        sessions: min([told[number] for number in sessions if number in told])
        for sessions in carried
        if not told.keys().isdisjoint(sessions)
    }
    left = {
        sessions: min(
            most,
            free.get(sessions, math.inf),
            capacity_of(sessions, availables, lans),
        )
        for sessions, most in carried.items()
    }
    if lans:
        left, limiting = on_lans(left, availables, lans)
        free.update({one: most for one, most in left.items() if leads_over(one, lans, limiting)})
    available = sum(left.values())
    for part in made.parts:
        mine = sum([left[sessions] for sessions in part.members])
        most = sum([carried[sessions] for sessions in part.members])
        available += (part.total * mine / most if most else 0.0) - mine
    whole = made.total is None or math.isinf(made.total) or available >= made.total * _ALL
    return made._replace(free=free, available=None if whole else available)


def _less(sessions: tuple[int, ...], carried: float, links: Mapping[int, float]) -> bool:
    """Whether sessions carry less than the sum of their links."""
    return carried < sum([links.get(number, math.inf) for number in sessions])


def _equal(shares: Shares, links: Mapping[int, float]) -> Shares:
    """Limit each session to what the least of their links carries, drained ones aside."""
    known = [links.get(number, 0.0) for numbers in shares for number in numbers]
    each = min([one for one in known if one > 0], default=math.inf)
    return {numbers: each * len(numbers) for numbers in shares}


def announced(total: float | None, link: float | None) -> float | None:
    """Return the bandwidth to announce over links of C, None for unknown; None for none."""
    if total is None:
        return None
    least = total if link is None else min(total, link)
    return None if math.isinf(least) else least
