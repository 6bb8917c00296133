"""Makes settings of fared of what FRR's statements say of BGP.

Peer groups are resolved: each neighbor has all of its settings. Defaults of FRR depend on
``frr defaults``: the datacenter ones are those of fared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fared.extensions.foreign.filters import EVERYTHING, Items, all_of, put_filter
from fared.extensions.foreign.frr.bgp import FAMILIES
from fared.extensions.foreign.frr.context import FrrBgp, FrrFile, FrrPeer, Given, Settings
from fared.extensions.foreign.frr.policy import FAMILY, list_of, map_of, redistribute

_DEFAULT: Final = "FRR's default"
_TIMERS: Final = (("hold-time", 180), ("keepalive", 60), ("connect-retry", 120))
"""Of FRR, unless its defaults are those of a data center: 9, 3 and 10."""
_BANDWIDTH: Final = "fared sends path bandwidth by itself: path-bandwidth"
_LISTED: Final = "fared announces it whether or not there is a route to it"
_NOTHING: Final = (
    "no policy: FRR exchanges nothing with it (ebgp-requires-policy), and so does fared"
)


def assemble_bgp(frr: FrrFile) -> None:
    """Put all settings of BGP into the draft, and list what remains."""
    bgp = frr.bgp
    if bgp is None:
        return
    source = bgp.statement.source
    frr.draft.put(("bgp", "as"), bgp.number, source)
    if ("as-path",) not in bgp.settings:
        frr.draft.put(("bgp", "as-path"), "strict", source, _DEFAULT)
    for path, given in bgp.settings.items():
        frr.draft.put(("bgp", *path), given.value, given.statement.source)
    for given in bgp.networks:
        _network(frr, given)
    redistribute(frr, "bgp", bgp.redistributed, None)
    peers = {name: peer for name, peer in bgp.peers.items() if not peer.is_group}
    families = [one for one in FAMILIES if any(_active(bgp, p, one) for p in peers.values())]
    if len(families) == 1:
        frr.draft.put(("bgp", "address-families"), families, source)
    for name, peer in peers.items():
        _neighbor(frr, bgp, name, peer, families)


def _network(frr: FrrFile, given: Given) -> None:
    before = frr.draft.get(("bgp", "networks")) or []
    frr.draft.put(("bgp", "networks"), [*before, given.value], given.statement.source)
    own = {str(address.network) for port in frr.ports.values() for address, _ in port.addresses}
    if given.value not in own:
        frr.draft.differ(given.statement.source, _LISTED)


def _neighbor(frr: FrrFile, bgp: FrrBgp, name: str, peer: FrrPeer, families: list[str]) -> None:
    settings = _settings(bgp, peer)
    remote = settings.get(("remote-as",))
    if remote is None:
        frr.draft.leave(peer.statement.source, f"{name} has no remote-as")
        return
    mine = [family for family in families if _active(bgp, peer, family)]
    if not mine:
        frr.draft.leave(peer.statement.source, f"{name} is active in no address family")
        return
    base = ("bgp", "neighbors", name)
    frr.draft.put(base, {}, peer.statement.source)
    if mine != families:
        frr.draft.put((*base, "address-families"), mine, peer.statement.source)
    for path, given in settings.items():
        frr.draft.put((*base, *path), given.value, given.statement.source)
    if not bgp.datacenter:
        for key, value in _TIMERS:
            if (key,) not in settings:
                frr.draft.put((*base, key), value, peer.statement.source, _DEFAULT)
    if ("maximum-prefixes",) not in settings:
        frr.draft.put((*base, "maximum-prefixes"), "none", peer.statement.source, _DEFAULT)
    _policy(frr, bgp, peer, (*base,), mine, internal=remote.value in ("internal", bgp.number))


def _settings(bgp: FrrBgp, peer: FrrPeer) -> Settings:
    """Return the settings of a neighbor: of the router, of its group, and its own."""
    found: Settings = {(key,): given for key, given in bgp.timers.items()}
    for each in _with_group(bgp, peer):
        found |= each.settings
    return found


def _with_group(bgp: FrrBgp, peer: FrrPeer) -> Iterator[FrrPeer]:
    """Yield the group of a neighbor, and then itself."""
    group = None if peer.group is None else bgp.peers.get(peer.group.value)
    yield from [] if group is None else [group]
    yield peer


def _active(bgp: FrrBgp, peer: FrrPeer, family: str) -> bool:
    found = family == "ipv4" and (bgp.ipv4_active is None or bool(bgp.ipv4_active.value))
    for each in _with_group(bgp, peer):
        lists = each.lists.get(family)
        if lists is not None and lists.active is not None:
            found = bool(lists.active.value)
    return found


# Policy


def _policy(
    frr: FrrFile,
    bgp: FrrBgp,
    peer: FrrPeer,
    base: tuple[str, ...],
    families: list[str],
    *,
    internal: bool,
) -> None:
    """Put what passes: with lists what they permit, else everything, or nothing."""
    required = not bgp.datacenter if bgp.requires_policy is None else bgp.requires_policy.value
    for word in ("import", "export"):
        source = peer.statement.source
        given = [one for family in families for one in _lists(bgp, peer, family, word)]
        if not given and required and not internal:
            frr.draft.differ(source, f"{word}: {_NOTHING}")
            continue
        try:
            name = _filter(frr, bgp, peer, families, word)
        except ValueError as error:
            line = given[0][1].statement.source
            frr.draft.leave(line, f"{error}: {word} is left out, so nothing passes")
            continue
        if not internal or name is not None:
            frr.draft.put((*base, word), "all", source)
        if name is not None:
            frr.draft.put((*base, "filter", word), name, given[0][1].statement.source)


def _lists(bgp: FrrBgp, peer: FrrPeer, family: str, word: str) -> Iterator[tuple[str, Given]]:
    """Yield the lists of a family in one direction: their kind, and their name."""
    found: dict[str, Given] = {}
    for each in _with_group(bgp, peer):
        lists = each.lists.get(family)
        if lists is not None:
            for kind in ("prefix_lists", "route_maps"):
                if word in (named := getattr(lists, kind)):
                    found[kind] = named[word]
    yield from found.items()


def _filter(frr: FrrFile, bgp: FrrBgp, peer: FrrPeer, families: list[str], word: str) -> str | None:
    """Return the filter of a direction, for all families; None: all passes. Raises ValueError."""
    items: list[Any] = []
    names: dict[str, None] = {}
    source = peer.statement.source
    for family in families:
        lists: list[Items] = []
        for kind, given in _lists(bgp, peer, family, word):
            source = given.statement.source
            found = _items(frr, kind, given, family)
            if found is not None:
                lists.append(found)
                names[given.value] = None
        items += all_of(lists) if lists else [EVERYTHING[FAMILY[family]]]
    if not names:
        return None
    return put_filter(frr.draft, "-".join(names), items or [_DENY], source)


_DENY: Final = "deny any"


def _items(frr: FrrFile, kind: str, given: Given, family: str) -> Items | None:
    """Return what a list permits; None: everything. Raises ValueError."""
    if kind == "prefix_lists":
        return list_of(frr, given.value, family)
    found = map_of(frr, given.value, family)
    if found.options.pop("bandwidth", None):
        frr.draft.differ(given.statement.source, _BANDWIDTH)
    if found.options:
        raise ValueError(f"route-map {given.value} sets {', '.join(found.options)}")
    return found.items
