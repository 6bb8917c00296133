"""Redistribution of FRR with its filters, as far as prefixes alone express them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_network
from typing import Any, Final, NamedTuple

from fared.core.filters import parse_item
from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.frr.context import AskedSource, FrrFile
from fared.extensions.foreign.frr.lines import FrrStatement
from fared.extensions.foreign.rules import number

_SOURCES: Final = {
    "connected": "connected",
    "kernel": "static",
    "static": "static",
    "default": "default",
}
_ALL: Final = {"ipv4": ["0.0.0.0/1", "128.0.0.0/1"], "ipv6": ["::/1", "8000::/1"]}
"""All prefixes of a family but the default route, which is a source of its own."""
_KERNEL_ONLY: Final = (
    "fared makes no static routes: those of FRR must be the kernel's, 'ip route add PREFIX via"
    " ADDRESS proto static'"
)
_ALWAYS_METRIC: Final = 1
"""Of FRR, for a default route that is advertised always; else it is 10, as in fared."""


class _RouteMap(NamedTuple):
    """What a route map leaves, and what it sets. ``prefixes`` None: all."""

    prefixes: list[str] | None
    options: dict[str, Any]
    wider: list[tuple[FrrStatement, str]]
    """Lines of prefix lists that say less than fared takes."""


def redistribute(
    frr: FrrFile, proto: str, asked: Sequence[AskedSource], metric: int | None
) -> None:
    """Put the sources of a protocol into the draft; ``metric``: of those that name none."""
    families: dict[str, set[str]] = {}
    for each in asked:
        try:
            _one(frr, proto, each, metric, families)
        except ValueError as error:
            frr.draft.leave(each.statement.source, str(error))
    if proto == "isis":
        _restrict(frr.draft, families)


def _one(
    frr: FrrFile, proto: str, asked: AskedSource, metric: int | None, families: dict[str, set[str]]
) -> None:
    if asked.source not in _SOURCES:
        known = "connected, static (and kernel) and default"
        raise ValueError(f"fared redistributes no {asked.source} routes: {known}")
    source = _SOURCES[asked.source]
    words = list(asked.words)
    family = words.pop(0) if proto == "isis" else "ipv4"
    options, wider = _options(frr, source, words, family)
    if source != "default" and metric is not None:
        options.setdefault("metric", metric)
    if source == "default" and proto == "ospf" and options.get("always"):
        options.setdefault("metric", _ALWAYS_METRIC)
    if source == "default":
        options.pop("prefixes", None)
    path = (proto, "redistribute", source)
    before = frr.draft.get(path)
    families.setdefault(source, set()).add(family)
    if before is not None and before != options:
        if {**before, "prefixes": None} != {**options, "prefixes": None}:
            where = frr.draft.sources[path].place
            raise ValueError(f"fared has one source {source}: {where} is taken")
        both = before.get("prefixes"), options.get("prefixes")
        options["prefixes"] = [*(both[0] or ()), *(both[1] or ())] if all(both) else []
    frr.draft.put(path, options, asked.statement.source)
    for line, text in wider:
        frr.draft.differ(line.source, text)
    if asked.source == "static":
        frr.draft.differ(asked.statement.source, _KERNEL_ONLY)


def _options(
    frr: FrrFile, source: str, words: list[str], family: str
) -> tuple[dict[str, Any], list[tuple[FrrStatement, str]]]:
    """Return the settings of a source, and remarks. Raises ValueError."""
    options: dict[str, Any] = {}
    wider: list[tuple[FrrStatement, str]] = []
    while words:
        match words:
            case ["metric" | "metric-type" | "tag" as name, text, *rest]:
                options[name] = number(text)
            case ["always", *rest] if source == "default":
                options["always"] = True
            case ["level-1" | "level-2" as level, *rest]:
                options["level"] = level
            case ["route-map", name, *rest]:
                wider += _filtered(frr, source, name, family, options)
            case [word, *_]:
                raise ValueError(f"{word} has no counterpart in fared")
        words = rest
    return options, wider


def _filtered(
    frr: FrrFile, source: str, name: str, family: str, options: dict[str, Any]
) -> list[tuple[FrrStatement, str]]:
    """Put what a route map says into the settings of a source; return remarks."""
    exact = _one_list(frr, name)
    if exact is not None and source != "default":
        entry, wanted = exact
        put_filter(frr, wanted, family)
        options |= _entry(frr, name, entry, family, strict=False).options
        options["filter"] = wanted
        return []
    found = _route_map(frr, name, family)
    options |= found.options
    if source == "default" and found.prefixes:
        raise ValueError("fared advertises a default route without a condition")
    if found.prefixes is not None:
        options["prefixes"] = found.prefixes
    return found.wider


def _one_list(frr: FrrFile, name: str) -> tuple[FrrStatement, str] | None:
    """Return the entry of a route map that only permits by one prefix list, and the list."""
    entries = frr.route_maps.get(name, [])
    if len(entries) != 1 or entries[0].words[2] != "permit":
        return None
    lists = [line.words[4] for line in entries[0].inside if line.words[3:4] == ["prefix-list"]]
    return (entries[0], lists[0]) if len(lists) == 1 else None


def put_filter(frr: FrrFile, name: str, family: str) -> None:
    """Put a prefix list into the draft as a filter, which means the same. Raises ValueError."""
    word = "ip" if family == "ipv4" else "ipv6"
    lines = [line for line in frr.prefix_lists.get(name, []) if line.words[0] == word]
    items = []
    for line in lines:
        words = line.words[5:] if line.words[3] == "seq" else line.words[3:]
        if words[:1] == ["description"]:
            continue
        text = " ".join(words)
        if words[1:] == ["any"]:
            text = f"{words[0]} {'0.0.0.0/0 le 32' if family == 'ipv4' else '::/0 le 128'}"
        parse_item(text)
        items.append(text)
    if not items:
        raise ValueError(f"the file has no prefix-list {name} of {family}")
    frr.draft.put(("filters", name), items, lines[0].source)


def _restrict(draft: Draft, families: dict[str, set[str]]) -> None:
    """Keep a source to the family that it was asked for: fared's sources are of both."""
    for source, asked in families.items():
        found = draft.get(("isis", "redistribute", source))
        filtered = found is not None and (found.get("prefixes") or found.get("filter"))
        if found is None or source == "default" or len(asked) > 1 or filtered:
            continue
        found["prefixes"] = list(_ALL[min(asked)])


# Route maps and prefix lists


def _route_map(frr: FrrFile, name: str, family: str) -> _RouteMap:
    entries = frr.route_maps.get(name)
    if not entries:
        raise ValueError(f"the file has no route-map {name}")
    found: list[_RouteMap] = []
    for entry in entries:
        if entry.words[2:3] == ["deny"]:
            if entry is entries[-1] and not entry.inside:
                break
            raise ValueError(f"route-map {name} denies (line {entry.number}): fared has filters")
        found.append(_entry(frr, name, entry, family))
    if not found:
        raise ValueError(f"route-map {name} permits nothing")
    if any(each.options != found[0].options for each in found):
        raise ValueError(f"route-map {name} sets different values for different prefixes")
    lists = [each.prefixes for each in found]
    everything = any(each is None for each in lists)
    return _RouteMap(
        None if everything else [prefix for each in lists for prefix in each or ()],
        found[0].options,
        [line for each in found for line in each.wider],
    )


def _entry(
    frr: FrrFile, name: str, entry: FrrStatement, family: str, *, strict: bool = True
) -> _RouteMap:
    """Read an entry; not ``strict``: its prefix list is a filter, read elsewhere."""
    prefixes: list[str] | None = None
    options: dict[str, Any] = {}
    wider: list[tuple[FrrStatement, str]] = []
    for line in entry.inside:
        match line.words:
            case ["match", "ip" | "ipv6", "address", "prefix-list", wanted]:
                if prefixes is not None:
                    raise ValueError(f"route-map {name} has two conditions (line {line.number})")
                prefixes = list(_prefix_list(frr, wanted, family, wider)) if strict else []
            case ["set", "metric", text]:
                options["metric"] = number(text)
            case ["set", "metric-type", "type-1" | "type-2" as kind]:
                options["metric-type"] = number(kind[-1])
            case ["set", "tag", text]:
                options["tag"] = number(text)
            case ["description", *_]:
                pass
            case words:
                text = " ".join(words[:2])
                raise ValueError(
                    f"'{text}' of route-map {name} (line {line.number}) has no counterpart in fared"
                )
    return _RouteMap(prefixes, options, wider)


def _prefix_list(
    frr: FrrFile, name: str, family: str, wider: list[tuple[FrrStatement, str]]
) -> Iterator[str]:
    """Yield the prefixes inside one of which a route must be. Raises ValueError."""
    entries = frr.prefix_lists.get(name)
    if not entries:
        raise ValueError(f"the file has no prefix-list {name}")
    for entry in entries:
        words = [word for word in entry.words[3:] if word]
        if words[:1] == ["seq"]:
            words = words[2:]
        match words:
            case ["description", *_]:
                continue
            case ["deny", *_] if entry is entries[-1]:
                if words[1:] in (["any"], ["0.0.0.0/0", "le", "32"], ["::/0", "le", "128"]):
                    return
            case ["permit", "any"]:
                yield from _ALL[family]
                continue
            case ["permit", prefix, *bounds]:
                yield from _permitted(entry, prefix, bounds, wider)
                continue
        raise ValueError(f"prefix-list {name} denies (line {entry.number}): prefixes permit only")


def _permitted(
    entry: FrrStatement, prefix: str, bounds: list[str], wider: list[tuple[FrrStatement, str]]
) -> Iterator[str]:
    network = ip_network(prefix, strict=False)
    longest = network.max_prefixlen
    given = dict(zip(bounds[::2], map(number, bounds[1::2]), strict=True))
    least, most = given.get("ge", network.prefixlen), given.get("le")
    if most is None:
        most = longest if "ge" in given else network.prefixlen
    yield str(network)
    if (least, most) != (network.prefixlen, longest):
        wider.append((entry, f"fared takes every prefix inside {network}, of any length"))
