"""What the chosen paths to a prefix carry (draft-ietf-idr-fare): bytes/s, infinite for no limit.

A neighbor n carries the lesser of C(n), the links to it, and B(n), what it announces. Several
sessions with one router count together, and its bandwidth is divided among them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fared.protocols.bgp.rib.decision import PeerPath
from fared.protocols.bgp.rib.paths import OWN

Shares = dict[tuple[int, ...], float]
"""By the numbers of sessions with one router, ascending: the limit B of what they carry."""


class PathBandwidth(NamedTuple):
    """The shares of neighbors, and what all of them carry; None: nothing to announce."""

    shares: Shares
    total: float | None


def path_bandwidth(chosen: Sequence[PeerPath], links: Mapping[int, float]) -> PathBandwidth:
    """Return what chosen paths carry; ``links`` are C by session, without those unknown."""
    if chosen and chosen[0].peer.number <= OWN:
        own = chosen[0].path.bandwidth
        return PathBandwidth({}, math.inf if own is None else own)
    speakers: dict[tuple[int, int], tuple[list[int], list[float]]] = {}
    equal = False
    for peer, path, _ in chosen:
        numbers, known = speakers.setdefault((peer.remote_as, peer.identifier), ([], []))
        numbers.append(peer.number)
        if path.bandwidth is not None:
            known.append(path.bandwidth)
        elif peer.missing == "ecmp":
            equal = True
    found = {
        tuple(sorted(numbers)): min(known, default=math.inf) for numbers, known in speakers.values()
    }
    if equal:
        # RFC 10005 §4: equally, and there is no value to announce (draft-ietf-bess-ebgp-dmz)
        return PathBandwidth(_equal(found, links), None)
    if found and not any(found.values()):
        # RFC 10005 §3.2: all zero, by local policy equally
        return PathBandwidth(_equal(found, links), 0.0)
    parts = [
        min(limit, sum([links.get(number, math.inf) for number in numbers]))
        for numbers, limit in found.items()
    ]
    return PathBandwidth(found, sum(parts) if parts else None)


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
