"""The prefixes of one LSP fragment, each once.

Entries of wide TLVs (135, 235 to 237) come before those of narrow ones (128, 130), and of several
entries for one prefix the best counts. ``router_prefixes`` decides between several fragments in
the same way.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from fared.core.ids import FAMILY_IPV4, Prefix
from fared.core.units import sane_capacity
from fared.paths.ted.model import PathType, PrefixReachability
from fared.paths.ted.rows import snapped
from fared.protocols.igp.prefix_limit import known_first
from fared.protocols.isis.ids import Level
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import (
    FLAG_EXTERNAL,
    FLAG_READVERTISED,
    MT_IPV4,
    IpReach,
    IpReachability,
    NarrowIpReachability,
    Tlv,
    of_type,
)
from fared.protocols.isis.settings import MAX_PATH_METRIC

At = tuple[int | None, int]
"""MT id, None for the TLVs without one, and family."""
NARROW: At = (None, FAMILY_IPV4)
"""Where the prefixes of narrow TLVs belong."""


@functools.lru_cache(maxsize=64)
def place(topology: int | None, family: int) -> At:
    """The key of a topology and family: one object for all fragments."""
    return topology, family


_EXTERNAL_METRIC = 64
"""Added to an external metric of narrow TLVs: its range is 64 to 127 (RFC 3787 §5)."""
_LEAKABLE = (2, 11, 12, 32)
"""Sub-TLVs that leaking preserves: 64-bit tag (RFC 5130 §3.2), router ids (RFC 7794 §2.2), BIER
info (RFC 8401 §4)."""
_NONE: frozenset[Prefix] = frozenset()
"""One for all: each takes 216 bytes."""
_Entries = Mapping[At, dict[Prefix, PrefixReachability | None]]
_NO_ENTRIES: Final[_Entries] = MappingProxyType({})
_NO_ATTRIBUTES: Final[Mapping[Prefix, IpReach]] = MappingProxyType({})
_REDISTRIBUTED = {
    Level.ONE: PathType.LEVEL_1_REDISTRIBUTED,
    Level.TWO: PathType.LEVEL_2_REDISTRIBUTED,
}


class TlvPrefixes(NamedTuple):
    """The prefixes of one wide TLV: those that count, those that do not, those with attributes."""

    items: tuple[PrefixReachability, ...]
    ignored: tuple[Prefix, ...]
    attributes: tuple[IpReach, ...]


class FragmentPrefixes(msgspec.Struct, frozen=True):
    """The prefixes of one fragment, in the order of its TLVs.

    ``entries`` is None for an IPv4 prefix that wide TLVs list with a metric or flags for which it
    does not count; then narrow entries for it do not count either. ``narrow`` are the prefixes of
    ``NARROW`` that only narrow TLVs list. ``attributes`` has the entries with attributes that
    leaking preserves. ``wide`` holds the prefixes of each wide TLV.
    """

    entries: _Entries = _NO_ENTRIES
    narrow: frozenset[Prefix] = _NONE
    attributes: Mapping[Prefix, IpReach] = _NO_ATTRIBUTES
    wide: tuple[TlvPrefixes, ...] = ()
    trimmed: bool = False
    """Whether these are not all, since there is no room for them."""

    @property
    def count(self) -> int:
        """How many prefixes are listed, in all topologies."""
        return sum(map(len, self.entries.values()))

    def trim(self, known: FragmentPrefixes, most: int) -> FragmentPrefixes:
        """Return these with at most so many prefixes: those in ``known`` before new ones."""
        listed = [(at, prefix) for at, mine in self.entries.items() for prefix in mine]
        before = {(at, prefix) for at, theirs in known.entries.items() for prefix in theirs}
        kept = known_first(listed, before, most)
        entries = {
            at: {prefix: item for prefix, item in mine.items() if (at, prefix) in kept}
            for at, mine in self.entries.items()
        }
        prefixes = {prefix for _, prefix in kept}
        return FragmentPrefixes(
            entries,
            self.narrow & prefixes,
            {prefix: reach for prefix, reach in self.attributes.items() if prefix in prefixes},
            trimmed=True,
        )


NO_PREFIXES: Final = FragmentPrefixes()


def read_prefixes(
    lsp: Lsp,
    *,
    own: bool,
    capacity_code: int | None,
    former: tuple[Lsp, FragmentPrefixes] | None = None,
) -> FragmentPrefixes:
    """Read the prefixes of one LSP; the arguments are those of ``read_fragment``."""
    tlvs = of_type(lsp.tlvs, IpReachability)
    known: dict[int, TlvPrefixes] = {}
    if former is not None:
        before = zip(of_type(former[0].tlvs, IpReachability), former[1].wide, strict=True)
        known = {id(tlv): read for tlv, read in before}
    level = Level(lsp.level)
    wide = tuple(
        [known.get(id(tlv)) or _read_wide(tlv, level, capacity_code, own=own) for tlv in tlvs]
    )
    entries: dict[At, dict[Prefix, PrefixReachability | None]] = {}
    for tlv, read in zip(tlvs, wide, strict=True):
        best = entries.setdefault(place(tlv.topology, tlv.family), {})
        for item in read.items:
            _keep_better(best, item)
    attributes = {reach.prefix: reach for read in wide for reach in read.attributes}
    ignored = [prefix for read in wide for prefix in read.ignored]
    items = [
        _reachability(reach, level, None, own=own)
        for reach in narrow_as_wide(lsp.tlvs)
        if _counts(reach, own=own)
    ]
    narrow: dict[Prefix, PrefixReachability | None] = {}
    if ignored or items:
        listed = {**dict.fromkeys(ignored), **entries.get(NARROW, {})}
        for item in items:
            if item.prefix not in listed:
                _keep_better(narrow, item)
        entries[NARROW] = {**listed, **narrow}
    if not (entries or wide):
        return NO_PREFIXES
    return FragmentPrefixes(
        entries or _NO_ENTRIES,
        frozenset(narrow) if narrow else _NONE,
        attributes or _NO_ATTRIBUTES,
        wide,
    )


def _read_wide(
    tlv: IpReachability, level: Level, capacity_code: int | None, *, own: bool
) -> TlvPrefixes:
    # RFC 5120 §7.3, §7.4: TLVs 235 and 237 with MT id 0 are ignored
    if tlv.topology == MT_IPV4:
        return TlvPrefixes((), (), ())
    counted = [reach for reach in tlv.prefixes if _counts(reach, own=own)]
    ignored: tuple[Prefix, ...] = ()
    if tlv.family == FAMILY_IPV4 and len(counted) < len(tlv.prefixes):
        ignored = tuple([r.prefix for r in tlv.prefixes if not _counts(r, own=own)])
    return TlvPrefixes(
        tuple([_reachability(reach, level, capacity_code, own=own) for reach in counted]),
        ignored,
        tuple([reach for reach in counted if _has_attributes(reach)]),
    )


def rank(item: PrefixReachability) -> tuple[int, int]:
    """Of several entries for a prefix of one router the lowest counts, the first of equals.

    RFC 5302 §3.2, RFC 5308 §5: first the kind of route, then the metric.
    """
    return item.path_type, item.metric


def path_type(level: Level, *, down: bool) -> PathType:
    """The kind of route of a prefix; the up/down bit is ignored in level 2 (RFC 5302 §3.3)."""
    if level is Level.TWO:
        return PathType.LEVEL_2
    return PathType.LEVEL_1_DOWN if down else PathType.LEVEL_1


def kept_attributes(reach: IpReach) -> IpReach:
    """The entry without sub-TLVs that are meaningful only in its own level."""
    unknown = tuple([item for item in reach.unknown if item[0] in _LEAKABLE])
    return replace(reach, unknown=unknown)


def _keep_better(best: dict[Prefix, PrefixReachability | None], item: PrefixReachability) -> None:
    other = best.setdefault(item.prefix, item)
    if other is not item and (other is None or rank(item) < rank(other)):
        best[item.prefix] = item


def _counts(reach: IpReach, *, own: bool) -> bool:
    """Whether an entry is used."""
    # our own leaked prefixes: the up/down bit in level 1, the R flag in either (RFC 7794 §2.1)
    if own and (reach.down or (reach.flags or 0) & FLAG_READVERTISED):
        return False
    # RFC 5305 §4, RFC 5308 §2
    return reach.metric <= MAX_PATH_METRIC


def says_external(reach: IpReach) -> bool:
    """Whether an entry is of another source: by the X bit (RFC 5308 §2) or flag (RFC 7794 §2.1)."""
    return reach.external or bool((reach.flags or 0) & FLAG_EXTERNAL)


def _reachability(
    reach: IpReach, level: Level, capacity_code: int | None, *, own: bool
) -> PrefixReachability:
    capacity = None if capacity_code is None else sane_capacity(reach.capacity)
    if capacity is not None:
        capacity = snapped(capacity)
    kind = path_type(level, down=reach.down)
    # leaked prefixes, which may have the flag as well, do not count and are not seen here
    if own and says_external(reach):
        kind = _REDISTRIBUTED[level]
    # RFC 5130 §3.1: the first of several
    tag = reach.tags[0] if reach.tags else 0
    return PrefixReachability(reach.prefix, reach.metric, kind, capacity, tag=tag)


def narrow_as_wide(tlvs: tuple[Tlv, ...]) -> Iterator[IpReach]:
    """The entries of TLVs 128 and 130 (RFC 1195) as TLV 135 would have them."""
    for tlv in of_type(tlvs, NarrowIpReachability):
        for item in tlv.prefixes:
            # RFC 5302 §3.3: an internal prefix (TLV 128) with an external metric is ignored
            if not item.metric_external or tlv.external:
                metric = item.metric + _EXTERNAL_METRIC * item.metric_external
                yield IpReach(item.prefix, metric, item.down, tlv.external)


def _has_attributes(reach: IpReach) -> bool:
    """Whether leaking must preserve more of a prefix than metric and capacity."""
    known = any(kind in _LEAKABLE for kind, _ in reach.unknown)
    return bool(reach.tags or reach.flags or reach.external or known)
