"""What the chosen paths to a prefix carry (draft-ietf-idr-fare): bytes/s, infinite for no limit.

A neighbor n carries the lesser of C(n), the links to it, and B(n), what it announces. Several
sessions with one router count together, and its bandwidth is divided among them. Neighbors whose
paths all pass through one router carry no more together than it does (``shared``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fared.protocols.bgp.rib.decision import PeerPath
from fared.protocols.bgp.rib.paths import OWN
from fared.protocols.bgp.rib.shared import (
    Chain,
    SharedPart,
    common,
    reached,
    shared_parts,
    told,
)

Shares = dict[tuple[int, ...], float]
"""By the numbers of sessions with one router, ascending: the limit B of what they carry."""


class PathBandwidth(NamedTuple):
    """The shares of neighbors, and what all of them carry; None: nothing to announce.

    ``parts``: neighbors that carry less together than alone. ``chain``: routers that all paths pass
    through, to be named to others.
    """

    shares: Shares
    total: float | None
    parts: tuple[SharedPart, ...] = ()
    chain: Chain = ()


def path_bandwidth(chosen: Sequence[PeerPath], links: Mapping[int, float]) -> PathBandwidth:
    """Return what chosen paths carry; ``links`` are C by session, without those unknown."""
    if chosen and chosen[0].peer.number <= OWN:
        own = chosen[0].path.bandwidth
        return PathBandwidth({}, math.inf if own is None else own)
    speakers: dict[tuple[int, int], tuple[list[int], list[float], list[Chain]]] = {}
    equal = False
    for peer, path, _ in chosen:
        numbers, known, chains = speakers.setdefault(peer.speaker, ([], [], []))
        numbers.append(peer.number)
        chains.append(path.limits)
        if path.bandwidth is not None:
            known.append(path.bandwidth)
        elif peer.missing == "ecmp":
            equal = True
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
        numbers: min(limit, sum([links.get(number, math.inf) for number in numbers]))
        for numbers, limit in found.items()
    }
    named = {tuple(sorted(numbers)): told(chains) for numbers, _, chains in speakers.values()}
    parts = shared_parts(carried, named)
    together = {sessions for part in parts for sessions in part.members}
    alone = [value for sessions, value in carried.items() if sessions not in together]
    total = sum([*alone, *[part.total for part in parts]]) if carried else None
    ways = [
        reached(chain, sum([links.get(number, math.inf) for number in sessions]))
        for sessions, chain in named.items()
        if carried[sessions] > 0
    ]
    return PathBandwidth(found, total, parts, common(ways))


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
