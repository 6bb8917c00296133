"""The contents of a fragment in which only bandwidths of links differ from the instance before.

In a fabric that adapts to load nearly all LSPs are such ones. Of thirty links of a fragment mostly
one has another bandwidth: its rows alone are read, and passed on to the arrays of the graph. The
result is that of ``read_fragment`` and ``changed_rows``.

A fast path: tests/isis/test_fragment_patch.py proves them equal; row ``IS-IS: fragment with other
bandwidths``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import MT_IPV4, IsReachability
from fared.protocols.isis.ted.fragment_facts import FragmentFacts, Links, Rows, bandwidths, link_ids

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def patched(
    former: Lsp, facts: FragmentFacts, lsp: Lsp, places: tuple[int, ...]
) -> tuple[FragmentFacts, Rows] | None:
    """The facts of an LSP, and the links whose bandwidths changed; None: more may have changed.

    ``facts`` are those of ``former``, an instance with the same TLVs but those in ``places``, and
    the same bits in its header.
    """
    links, rows = facts.links, Rows()
    for place in places:
        before, after = former.tlvs[place], lsp.tlvs[place]
        if not (isinstance(before, IsReachability) and isinstance(after, IsReachability)):
            return None
        topology = before.topology
        if (after.topology, len(after.neighbors)) != (topology, len(before.neighbors)):
            return None
        if topology == MT_IPV4:  # ignored (RFC 5120 §7.2)
            continue
        first = 0
        for tlv in lsp.tlvs[:place]:
            if isinstance(tlv, IsReachability) and tlv.topology == topology:
                first += len(tlv.neighbors)
        made = _with_bandwidths(links[topology], first, before, after)
        if made is None:
            return None
        renewed, found = made
        if found:
            links = {**links, topology: renewed}
            rows.setdefault(topology, []).extend(found)
    return (facts if links is facts.links else replace(facts, links=links)), rows


def _with_bandwidths(
    links: Links, first: int, before: IsReachability, after: IsReachability
) -> tuple[Links, list[int]] | None:
    """Links with the bandwidths of a changed TLV, which begins at row ``first``, and their rows."""
    capacities, availables, rows = links.capacities, links.availables, list[int]()
    for row, (old, new) in enumerate(zip(before.neighbors, after.neighbors, strict=True), first):
        if old is new:
            continue
        if (old.neighbor, old.metric, link_ids(old)) != (new.neighbor, new.metric, link_ids(new)):
            return None
        was, now = old.attributes, new.attributes
        if was.delay != now.delay or was.min_max_delay != now.min_max_delay:
            return None
        capacity, available = bandwidths(new.attributes)
        other_capacity = _differ(float(capacities[row]), capacity)
        other_available = _differ(float(availables[row]), available)
        if other_capacity:
            capacities = _with(capacities, links.capacities, row, capacity)
        if other_available:
            availables = _with(availables, links.availables, row, available)
        if other_capacity or other_available:
            rows.append(row)
    if not rows:
        return links, rows
    return replace(links, capacities=capacities, availables=availables), rows


def _with(
    column: NDArray[np.float64], former: NDArray[np.float64], row: int, value: float
) -> NDArray[np.float64]:
    """A column with another value: the former one is copied first."""
    found = column.copy() if column is former else column
    found[row] = value
    return found


def _differ(one: float, other: float) -> bool:
    """Whether two bandwidths differ; NaN, unknown, equals NaN."""
    return one != other and not (one != one and other != other)  # noqa: PLR0124 - NaN
