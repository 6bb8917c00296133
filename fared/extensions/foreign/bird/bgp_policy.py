"""What passes between BIRD and a neighbor in BGP, in words of fared.

BIRD tells a neighbor what an export filter takes of its table; fared tells it what is named: its
networks (``own``), what it redistributes (``igp``), and what other neighbors told it (``bgp``). So
routes are put into classes by the protocol that they come from, and for each class the filter is
asked which prefixes pass.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fared.core.filters import FilterItem
from fared.extensions.foreign.bird.bgp import FAMILIES, BirdPeer, Written
from fared.extensions.foreign.bird.export import ExportStep, Meanings, Others, read_steps
from fared.extensions.foreign.bird.parse import BirdStatement
from fared.extensions.foreign.draft import Draft, Path
from fared.extensions.foreign.filters import EVERYTHING, ChainEntry, Items, in_turn, put_filter

BGP: Final = "bgp"
_RTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "RTS_STATIC": "static",
        "RTS_DEVICE": "direct",
        "RTS_INHERIT": "kernel",
        "RTS_OSPF": "ospf",
        "RTS_OSPF_IA": "ospf",
        "RTS_OSPF_EXT1": "ospf",
        "RTS_OSPF_EXT2": "ospf",
    }
)
_NO_POLICY: Final = "no policy: BIRD exchanges nothing with it (RFC 8212), and so does fared"
_DIFFERENT: Final = "other neighbors are told networks of other protocols, and fared has one list"


class RouteClass(NamedTuple):
    """Routes of one protocol of the file: networks, and what is redistributed as a source."""

    kind: str
    networks: Sequence[Written]
    source: str | None
    statement: BirdStatement

    @property
    def inside(self) -> Sequence[BirdStatement]:
        """Its lines."""
        return self.statement.inside or ()


class BirdBgp(NamedTuple):
    """All that the assembly reads."""

    draft: Draft
    peers: Sequence[BirdPeer]
    others: Others
    classes: Mapping[str, RouteClass]
    bfd: Mapping[str, Mapping[str, Any]]
    merges: Written | None
    """``merge paths`` of the kernel protocol: how many at most."""


def internal(peer: BirdPeer) -> bool:
    """Whether a neighbor is in our AS."""
    assert peer.remote is not None
    assert peer.system is not None
    return peer.remote.value in ("internal", peer.system.value)


def put_import(bird: BirdBgp, base: Path, peer: BirdPeer, families: Sequence[str]) -> None:
    """Put what is accepted of a neighbor, with the filter of it."""
    found = _Direction("import", [], [], families, {}, [])
    for family in families:
        channel = peer.channels[family]
        line = channel.policies.get("import")
        if line is None:
            if internal(peer):
                found.items.append(EVERYTHING[FAMILIES[family]])
            else:
                bird.draft.differ(channel.statement.source, f"import: {_NO_POLICY}")
            continue
        found.lines.append(line)
        try:
            name, items = _permitted(line, Meanings({}, {}, bird.others.filters, FAMILIES[family]))
        except ValueError as error:
            bird.draft.leave(line.source, f"{error}: import is left out, so nothing passes")
            return
        found.names[name] = None
        found.items.extend(items)
    _put(bird, base, peer, found._replace(what=["all"] if found.items else []))


def _permitted(line: BirdStatement, meanings: Meanings) -> tuple[str, Items]:
    name, steps = read_steps(line, meanings)
    if any(step.sources is not None for step in steps):
        raise ValueError("routes of a neighbor have no other source")
    _check_options(steps)
    return name, in_turn([ChainEntry(step.accept, step.items) for step in steps])


def _check_options(steps: Sequence[ExportStep]) -> None:
    if any(step.options.get("tag") or step.options.get("metric", 10000) != 10000 for step in steps):
        raise ValueError("fared sets no attributes of routes")


class Exported(NamedTuple):
    """What a neighbor is told: by class of routes, the prefixes that pass, in all families."""

    classes: Mapping[str, Items]
    names: Mapping[str, None]
    lines: Sequence[BirdStatement]
    error: ValueError | None = None


def exported(bird: BirdBgp, peer: BirdPeer) -> Exported:
    """Return what a neighbor is told, as far as that can be expressed."""
    classes: dict[str, list[Any]] = {}
    names: dict[str, None] = {}
    lines = []
    for family, channel in peer.channels.items():
        line = channel.policies.get("export")
        if line is None:
            if not internal(peer):
                bird.draft.differ(channel.statement.source, f"export: {_NO_POLICY}")
            continue
        lines.append(line)
        try:
            name, steps = read_steps(line, _meanings(bird, FAMILIES[family]))
            _check_options(steps)
            for each in (*bird.classes, BGP):
                about = [step for step in steps if step.sources is None or each in step.sources]
                found = in_turn([ChainEntry(step.accept, step.items) for step in about])
                if found:
                    classes.setdefault(each, []).extend(found)
        except ValueError as error:
            return Exported({}, {}, [line], error)
        names[name] = None
    return Exported(classes, names, lines)


def _meanings(bird: BirdBgp, family: int) -> Meanings:
    kinds: dict[str, list[str]] = {word: [] for word in _RTS}
    for word, kind in _RTS.items():
        kinds[word] += [name for name, one in bird.classes.items() if one.kind == kind]
    protocols = {name: name for name in bird.classes}
    return Meanings({**kinds, "RTS_BGP": [BGP]}, protocols, bird.others.filters, family)


def put_export(
    bird: BirdBgp, base: Path, peer: BirdPeer, told: Exported, own: Collection[str]
) -> None:
    """Put what a neighbor is told; ``own`` are the classes that any neighbor is told."""
    reason = str(told.error or "") or _inexpressible(told, own)
    if reason:
        source = told.lines[0].source
        bird.draft.leave(source, f"{reason}: export is left out, so nothing passes")
        return
    mine = [bird.classes[name] for name in told.classes if name != BGP]
    passes = {
        "own": any(one.networks for one in mine),
        "igp": any(one.source for one in mine),
        "bgp": BGP in told.classes,
    }
    words = [word for word, holds in passes.items() if holds]
    items = list(next(iter(told.classes.values()), []))
    families = list(peer.channels)
    found = _Direction("export", words, items, families, dict(told.names), list(told.lines))
    _put(bird, base, peer, found)


def _inexpressible(told: Exported, own: Collection[str]) -> str:
    """Say why fared has no words for what a neighbor is told; empty: it has."""
    mine = {name for name in told.classes if name != BGP}
    if mine and mine != set(own):
        return _DIFFERENT
    lists = list(told.classes.values())
    if any(each != lists[0] for each in lists):
        return "the filter permits other prefixes of other sources"
    return ""


class _Direction(NamedTuple):
    """What passes in a direction: words, the prefixes, names of filters, and the lines."""

    word: str
    what: list[str]
    items: list[FilterItem]
    families: Sequence[str]
    names: dict[str, None]
    lines: list[BirdStatement]


def _put(bird: BirdBgp, base: Path, peer: BirdPeer, way: _Direction) -> None:
    """Put a direction, and its filter unless all prefixes pass."""
    if not way.lines and not internal(peer):
        return  # as without a policy
    source = way.lines[0].source if way.lines else peer.statement.source
    what = way.what if len(way.what) > 1 else "".join(way.what) or "none"
    bird.draft.put((*base, way.word), what, source)
    everything = [EVERYTHING[FAMILIES[family]] for family in way.families]
    if way.what and way.items != everything:
        name = "-".join(filter(None, way.names)) or f"{way.word}ed"
        filtered = put_filter(bird.draft, name, way.items, source)
        bird.draft.put((*base, "filter", way.word), filtered, source)
