"""Redistribution of FRR with its filters: what they permit by prefix becomes a filter of fared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from fared.core.filters import FilterItem, parse_item
from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6
from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.filters import (
    EVERYTHING,
    ChainEntry,
    Items,
    all_of,
    in_turn,
    put_filter,
)
from fared.extensions.foreign.frr.context import AskedSource, FrrFile
from fared.extensions.foreign.frr.lines import FrrStatement
from fared.extensions.foreign.rules import number

_KERNEL: Final = {"connected": "connected", "kernel": "static", "static": "static"}
_SOURCES: Final[Mapping[str, Mapping[str, str]]] = {
    "ospf": {**_KERNEL, "isis": "isis", "bgp": "bgp", "default": "default"},
    "isis": {**_KERNEL, "ospf": "ospf", "bgp": "bgp", "default": "default"},
    "bgp": {**_KERNEL, "ospf": "ospf", "isis": "isis"},
}
"""By protocol: sources of FRR, and what they are in fared."""
_ALL: Final = {"ipv4": ["0.0.0.0/1", "128.0.0.0/1"], "ipv6": ["::/1", "8000::/1"]}
"""All prefixes of a family but the default route, which is a source of its own."""
_KERNEL_ONLY: Final = (
    "fared makes no static routes: those of FRR must be the kernel's, 'ip route add PREFIX via"
    " ADDRESS proto static'"
)
_ALWAYS_METRIC: Final = 1
"""Of FRR, for a default route that is advertised always; else it is 10, as in fared."""


FAMILY: Final = {"ipv4": FAMILY_IPV4, "ipv6": FAMILY_IPV6}
_WORDS: Final = {"ipv4": "ip", "ipv6": "ipv6"}
_SEQUENCE: Final = 5
"""The step of numbers that FRR gives to lines without one."""


class _AskedSettings(NamedTuple):
    """What is asked of a source: settings, the lists that must all permit it, their names."""

    options: dict[str, Any]
    lists: list[tuple[str, Items]]


class MappedRoutes(NamedTuple):
    """What a route map sets, and the list that it is; None: it permits everything."""

    options: dict[str, Any]
    items: Items | None
    name: str


def redistribute(
    frr: FrrFile,
    proto: str,
    asked: Sequence[AskedSource],
    metric: int | None,
    lists: Sequence[AskedSource] = (),
) -> None:
    """Put the sources of a protocol into the draft; ``metric``: of those that name none.

    ``lists``: access lists that a source must pass too.
    """
    sources = _AskedSources(frr, proto, metric, lists)
    for each in asked:
        try:
            sources.take(each)
        except ValueError as error:
            frr.draft.leave(each.statement.source, str(error))
    for given in lists:
        if all(each.source != given.source for each in asked):
            reason = f"{given.source} is not redistributed: it has no effect"
            frr.draft.leave(given.statement.source, reason)
    if proto in ("isis", "bgp"):
        _restrict(frr.draft, proto, sources.families)


class _AskedSources:
    """The sources of a protocol; ``families``: those that each has been asked for."""

    def __init__(
        self, frr: FrrFile, proto: str, metric: int | None, lists: Sequence[AskedSource]
    ) -> None:
        self._frr = frr
        self._proto = proto
        self._metric = metric
        self._lists = lists
        self.families: dict[str, set[str]] = {}

    def take(self, asked: AskedSource) -> None:
        """Put a source into the draft. Raises ValueError."""
        sources = _SOURCES[self._proto]
        if asked.source not in sources:
            *most, last = dict.fromkeys(sources.values())
            known = f"{', '.join(most)} and {last}".replace("static", "static (and kernel)")
            raise ValueError(f"fared redistributes no {asked.source} routes: {known}")
        source, draft = sources[asked.source], self._frr.draft
        words = list(asked.words)
        family = "ipv4" if self._proto == "ospf" else words.pop(0)
        wanted = self._wanted(asked, source, words, family)
        options = wanted.options
        path = (self._proto, "redistribute", source)
        others = self.families.setdefault(source, set())
        before = draft.get(path)
        if (name := self._filter(asked, wanted, family, before if others else None)) is not None:
            options["filter"] = name
        if before is not None and before != options:
            kept = {**before, "filter": None} == {**options, "filter": None}
            if not kept or family in others:
                where = draft.sources[path].place
                raise ValueError(f"fared has one source {source}: {where} is taken")
        others.add(family)
        draft.put(path, options, asked.statement.source)
        if asked.source == "static":
            draft.differ(asked.statement.source, _KERNEL_ONLY)

    def _wanted(
        self, asked: AskedSource, source: str, words: list[str], family: str
    ) -> _AskedSettings:
        found = _wanted(self._frr, source, words, family)
        for given in self._lists:
            if given.source == asked.source:
                name = given.words[0]
                found.lists.append((name, _access_list(self._frr, name)))
        if source != "default" and self._metric is not None:
            found.options.setdefault("metric", self._metric)
        if self._proto == "bgp":
            found.options.pop("bandwidth", None)
            if "metric" in found.options:
                found.options["med"] = found.options.pop("metric")
        if source == "default" and self._proto == "ospf" and found.options.get("always"):
            found.options.setdefault("metric", _ALWAYS_METRIC)
        return found

    def _filter(
        self, asked: AskedSource, wanted: _AskedSettings, family: str, before: dict[str, Any] | None
    ) -> str | None:
        """Return the filter of a source, with what its other family has ``before``; None: none."""
        draft = self._frr.draft
        named = (before or {}).get("filter")
        if not wanted.lists and named is None:
            return None
        if asked.source == "default":
            raise ValueError("fared advertises a default route without a condition")
        items = all_of([found for _, found in wanted.lists] or [[EVERYTHING[FAMILY[family]]]])
        if not items:
            raise ValueError("its filters permit nothing")
        names = [name for name, _ in wanted.lists]
        if before is not None:
            (other,) = FAMILY.keys() - {family}
            texts = [] if named is None else draft.get(("filters", named))
            theirs = [parse_item(text) for text in texts] or [EVERYTHING[FAMILY[other]]]
            items, names = [*theirs, *items], [*([named] if named else []), *names]
        return put_filter(draft, "-".join(dict.fromkeys(names)), items, asked.statement.source)


def _wanted(frr: FrrFile, source: str, words: list[str], family: str) -> _AskedSettings:
    """Return what the words behind a source ask for. Raises ValueError."""
    options: dict[str, Any] = {}
    lists: list[tuple[str, Items]] = []
    while words:
        match words:
            case ["metric" | "metric-type" | "tag" as name, text, *rest]:
                options[name] = number(text)
            case ["always", *rest] if source == "default":
                options["always"] = True
            case ["level-1" | "level-2" as level, *rest]:
                options["level"] = level
            case ["route-map", name, *rest]:
                given = map_of(frr, name, family)
                options |= given.options
                lists += [] if given.items is None else [(given.name, given.items)]
            case [word, *_]:
                raise ValueError(f"{word} has no counterpart in fared")
        words = rest
    return _AskedSettings(options, lists)


def put_prefix_list(frr: FrrFile, name: str, family: str) -> str:
    """Put a prefix list into the draft as a filter; return its name. Raises ValueError."""
    found = in_turn([ChainEntry(True, list_of(frr, name, family))])
    if not found:
        raise ValueError(f"prefix-list {name} permits nothing")
    return put_filter(frr.draft, name, found, frr.prefix_lists[name][0].source)


def _restrict(draft: Draft, proto: str, families: dict[str, set[str]]) -> None:
    """Keep a source to the family that it was asked for: fared's sources are of both."""
    for source, asked in families.items():
        found = draft.get((proto, "redistribute", source))
        filtered = found is not None and (found.get("prefixes") or found.get("filter"))
        if found is None or source == "default" or len(asked) > 1 or filtered:
            continue
        found["prefixes"] = list(_ALL[min(asked)])


# Route maps, prefix lists, access lists


def map_of(frr: FrrFile, name: str, family: str) -> MappedRoutes:
    """Read a route map: its entries are a chain of lists. Raises ValueError."""
    entries = sorted(frr.route_maps.get(name, []), key=lambda entry: number(entry.words[3]))
    if not entries:
        raise ValueError(f"the file has no route-map {name}")
    chain: list[ChainEntry] = []
    names: list[str] = []
    settings: list[dict[str, Any]] = []
    for entry in entries:
        options, wanted = _entry(name, entry)
        items = list_of(frr, wanted, family) if wanted else [EVERYTHING[FAMILY[family]]]
        permit = entry.words[2] == "permit"
        chain.append(ChainEntry(permit, items))
        names += [wanted or ""]
        settings += [options] if permit else []
    if any(each != settings[0] for each in settings):
        raise ValueError(f"route-map {name} sets different values for different prefixes")
    items = in_turn(chain)
    if not items:
        raise ValueError(f"route-map {name} permits nothing")
    if items[0] == EVERYTHING[FAMILY[family]]:
        return MappedRoutes(settings[0], None, name)
    return MappedRoutes(settings[0], items, names[0] if len(names) == 1 else name)


def _entry(name: str, entry: FrrStatement) -> tuple[dict[str, Any], str | None]:
    """Return what an entry sets, and its prefix list. Raises ValueError."""
    wanted: str | None = None
    options: dict[str, Any] = {}
    for line in entry.inside:
        match line.words:
            case ["match", "ip" | "ipv6", "address", "prefix-list", prefixes]:
                if wanted is not None:
                    raise ValueError(f"route-map {name} has two conditions (line {line.number})")
                wanted = prefixes
            case ["set", "metric", text]:
                options["metric"] = number(text)
            case ["set", "metric-type", "type-1" | "type-2" as kind]:
                options["metric-type"] = number(kind[-1])
            case ["set", "extcommunity", "bandwidth", *_]:
                options["bandwidth"] = True
            case ["set", "tag", text]:
                options["tag"] = number(text)
            case ["description", *_]:
                pass
            case words:
                text = " ".join(words[:2])
                raise ValueError(
                    f"'{text}' of route-map {name} (line {line.number}) has no counterpart in fared"
                )
    return options, wanted


def list_of(frr: FrrFile, name: str, family: str) -> list[FilterItem]:
    """Return the items of a prefix list, in the order of their numbers. Raises ValueError."""
    lines = [line for line in frr.prefix_lists.get(name, []) if line.words[0] == _WORDS[family]]
    found: dict[int, FilterItem] = {}
    for line in lines:
        at, words = _numbered(line.words[3:], found)
        if words[:1] == ["description"]:
            continue
        if len(words) < 2:
            raise ValueError(f"prefix-list {name} (line {line.number}): a prefix is missing")
        if words[1:] == ["any"]:
            found[at] = EVERYTHING[FAMILY[family]]
        else:
            found[at] = parse_item(" ".join([words[0], _prefix(words[1]), *words[2:]]))
        found[at] = _as(words[0], found[at])
    if not found:
        raise ValueError(f"the file has no prefix-list {name} of {family}")
    return [found[at] for at in sorted(found)]


def _access_list(frr: FrrFile, name: str) -> list[FilterItem]:
    """Return the items of an access list: of all lengths inside a prefix. Raises ValueError."""
    found: dict[int, FilterItem] = {}
    for line in frr.access_lists.get(name, []):
        at, words = _numbered(line.words[2:], found)
        match words:
            case ["remark", *_]:
                continue
            case ["permit" | "deny" as action, "any"]:
                found[at] = _as(action, EVERYTHING[FAMILY_IPV4])
            case ["permit" | "deny" as action, prefix] if "/" in prefix:
                found[at] = parse_item(f"{action} {_prefix(prefix)} le 32")
            case ["permit" | "deny" as action, prefix, "exact-match"]:
                found[at] = parse_item(f"{action} {_prefix(prefix)}")
            case _:
                raise ValueError(
                    f"access-list {name} (line {line.number}): fared has prefixes only"
                )
    if not found:
        raise ValueError(f"the file has no access-list {name}")
    return [found[at] for at in sorted(found)]


def _numbered(words: list[str], before: dict[int, FilterItem]) -> tuple[int, list[str]]:
    """Return the number of a line, which may be missing, and the words behind it."""
    if words[:1] == ["seq"]:
        return number(words[1]), words[2:]
    return max(before, default=0) // _SEQUENCE * _SEQUENCE + _SEQUENCE, words


def _as(action: str, item: FilterItem) -> FilterItem:
    return replace(item, permit=action == "permit")


def _prefix(text: str) -> str:
    return str(ip_network(text, strict=False))
