"""Accepted entries that are probably not meant: each a warning, at its place in the file.

``here`` compares the file with this machine; the traps here are in the file itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fared.config.bgp import Bgp
from fared.config.bgp_neighbor import BgpNeighbor, parse_neighbor
from fared.config.document import PathKey, Places
from fared.config.filters import FILTER, FILTERS, names_in
from fared.config.model import Config
from fared.core.filters import Filter
from fared.core.ids import ADDRESS_BITS, parse_prefix
from fared.core.routes import ORIGIN_TAGS
from fared.router.protocols import BGP

_LARGE: Final = 10
"""Seconds, for intervals that other routers take in milliseconds."""
_MILLISECONDS: Final = ("min-tx", "min-rx", "initial-delay", "short-delay", "long-delay")
_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - addresses to warn of

_LEAKING: Final = "inter-level-propagation-policies"
_REDISTRIBUTE: Final = "redistribute"
_RETURNS: Final = (
    "without a tag no border recognizes routes of {0}: another one may redistribute them from {1} "
    "back into {0}, and prefer them there"
)

Trap = tuple[PathKey, str]
"""The path of an entry, and what is wrong with it."""


def traps(config: Config, places: Places) -> Iterator[Trap]:
    """Yield what is accepted and probably not meant."""
    yield from _bfd(places)
    yield from _milliseconds(places)
    yield from _host_bits(places)
    yield from _empty(places)
    yield from _bgp(config, places)
    yield from _filters(config, places)
    yield from _redistribution(config)
    listen = config.api.http
    if listen is not None and listen.host in _EVERYWHERE:
        message = "everybody who reaches this machine can read and ask: 127.0.0.1 is the default"
        yield ("api", "http"), message


def _bfd(places: Places) -> Iterator[Trap]:
    """Settings of BFD on an interface that does not use it."""
    for path, given in places.find("bfd"):
        if (
            ("interfaces" in path or path[0] == BGP)
            and isinstance(given, dict)
            and given
            and "enabled" not in given
        ):
            yield path, "BFD is off here: add 'enabled: true'"


def _milliseconds(places: Places) -> Iterator[Trap]:
    for key in _MILLISECONDS:
        for path, given in places.find(key):
            plain = isinstance(given, int | float) and not isinstance(given, bool)
            if plain and given >= _LARGE:
                yield path, f"these are {given} seconds: {given}ms are milliseconds"


def _host_bits(places: Places) -> Iterator[Trap]:
    """Prefixes with bits of a host, which are ignored."""
    for path, given in (*places.find("prefixes"), *places.find("networks")):
        for index, text in enumerate(given if isinstance(given, list) else ()):
            if path[0] == BGP and not _is_prefix(text):
                continue  # an interface
            if (used := _without_host_bits(text)) is not None:
                yield (*path, index), f"bits of a host are ignored: {used} is used"
    for path, given in places.find("ranges"):
        for text in given if isinstance(given, dict) else ():
            if (used := _without_host_bits(text)) is not None:
                yield (*path, text), f"bits of a host are ignored: {used} is used"


def _is_prefix(text: object) -> bool:
    return "/" in str(text)


def _without_host_bits(text: Any) -> str | None:  # noqa: ANN401 - what YAML holds
    """Return the prefix without bits of a host; None: it has none."""
    address = str(text).partition("/")[0]
    prefix = parse_prefix(str(text))
    whole = parse_prefix(f"{address}/{ADDRESS_BITS[prefix.family]}")
    return None if whole.network == prefix.network else str(prefix)


def _empty(places: Places) -> Iterator[Trap]:
    """Areas, or all of IS-IS, without an interface."""
    for path, given in places.find("areas"):
        if path == ("ospf", "areas"):
            for area, content in (given or {}).items():
                if not (content or {}).get("interfaces"):
                    yield (*path, area), "no interface: OSPF does not run in this area"
    for path, given in places.find("isis"):
        if path == ("isis",) and not (given or {}).get("interfaces"):
            yield path, "no interface: IS-IS runs on none"


def _bgp(config: Config, places: Places) -> Iterator[Trap]:
    """Neighbors that exchange nothing, or that nothing watches, and words without routes."""
    bgp = config.bgp
    if bgp is None:
        return
    if not bgp.neighbors:
        yield (BGP,), "no neighbor: BGP runs with none"
    given: Any = next((data for path, data in places.find("neighbors") if path[0] == BGP), None)
    seen: dict[str, object] = {}
    for text in given or ():
        path, key = (BGP, "neighbors", text), parse_neighbor(text)
        if key in seen:
            yield path, f"it is {seen[key]} again, whose settings do not count"
        seen[key] = text
        yield from _of_neighbor(path, bgp, bgp.neighbors[key])
    for source in bgp.redistribute.named:
        if source in ("ospf", "isis") and source not in config.protocols:
            yield (BGP, "redistribute", source), f"ignored: {source} does not run"


def _of_neighbor(path: PathKey, bgp: Bgp, neighbor: BgpNeighbor) -> Iterator[Trap]:
    if bgp.is_external(neighbor):
        missing = {"import": neighbor.import_ is None, "export": neighbor.export is None}
        does = {"import": "accepted from it", "export": "advertised to it"}
        for word in (word for word, is_missing in missing.items() if is_missing):
            yield path, f"nothing is {does[word]}: an external neighbor needs {word} (RFC 8212)"
    if "igp" in (neighbor.export or ()) and not bgp.redistribute.wanted:
        yield (*path, "export"), "igp stands for no routes: redistribute names no source"
    if not neighbor.hold_time and not neighbor.bfd.enabled:
        message = "a silent neighbor is never noticed: with 0, only BFD or the link tells"
        yield (*path, "hold-time"), message


def _filters(config: Config, places: Places) -> Iterator[Trap]:
    """Items that decide nothing, filters that nothing uses, and places that use none."""
    used = dict.fromkeys(config.filters, False)
    for path, given in places.find(FILTER):
        for below, name in names_in(given) if path[0] != FILTERS else ():
            used[name] = True
            here = (*path, *below)
            if path[1] == _REDISTRIBUTE and (path[0] == BGP or path[2] in ORIGIN_TAGS):
                continue  # routes of other protocols have tags
            if path[:2] != ("isis", _LEAKING):
                yield from _tags(config, name, here)
            elif not _leaks(config, below[-1]):
                yield here, f"ignored: {below[-1]} is off, or the level is not level-1-2"
    for name, is_used in used.items():
        if not is_used:
            yield (FILTERS, name), "no setting uses this filter"
        yield from _items(config, name, places)


def _items(config: Config, name: str, places: Places) -> Iterator[Trap]:
    items = config.filters[name]
    for at, before in Filter(name, items).unreachable():
        message = f"never reached: item {before + 1} ({items[before]}) matches all of it"
        yield (FILTERS, name, at), message
    given: Any = next(data for path, data in places.find(FILTERS) if len(path) == 1)
    for at, text in enumerate(given[name]):
        word = next((word for word in text.split() if "/" in word), None)
        if word is not None and (used := _without_host_bits(word)) is not None:
            yield (FILTERS, name, at), f"bits of a host are ignored: {used} is used"


def _tags(config: Config, name: str, path: PathKey) -> Iterator[Trap]:
    """Items with a tag where no prefix has one."""
    found = [at for at, item in enumerate(config.filters[name], 1) if item.tag]
    if found:
        yield path, f"item {found[0]} of {name} matches nothing: prefixes have no tags here"


def _redistribution(config: Config) -> Iterator[Trap]:
    """Protocols that are redistributed and do not run, and routes that would come back."""
    for name, section in config.protocols.items():
        if name == BGP:
            continue
        sources = section.redistribute.named
        tags = {source: getattr(settings, "tag", None) for source, settings in sources.items()}
        for source in sorted(tags.keys() & ORIGIN_TAGS.keys()):
            path, other = (name, _REDISTRIBUTE, source), config.protocols.get(source)
            tag = tags[source]
            same = sorted(each for each in tags if each != source and tag and tags[each] == tag)
            if other is None:
                yield path, f"{source} does not run here: nothing is redistributed"
            elif tag == 0 and name in other.redistribute.named:
                yield (*path, "tag"), _RETURNS.format(source, name)
            elif same:
                message = f"{same[0]} has this tag, too: borders take its routes for those of "
                yield (*path, "tag"), message + source


def _leaks(config: Config, direction: str) -> bool:
    isis = config.isis
    if isis is None or isis.level != "level-1-2":
        return False
    return bool(getattr(isis.inter_level_propagation_policies, direction.replace("-", "_")))
