"""Makes settings of fared of what BIRD's ``protocol bgp`` say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_network
from typing import Final

from fared.config.bgp_instead import NEIGHBOR, ROUTER
from fared.extensions.foreign.bird.bgp import FAMILIES, BirdPeer, Written
from fared.extensions.foreign.bird.bgp_policy import (
    BGP,
    BirdBgp,
    RouteClass,
    exported,
    internal,
    put_export,
    put_import,
)
from fared.extensions.foreign.bird.export import KERNEL_ONLY, is_on
from fared.extensions.foreign.bird.parse import BirdStatement
from fared.extensions.foreign.draft import Path

DEFAULT: Final = "BIRD's default"
_TIMERS: Final = (("hold-time", 240), ("keepalive", 80), ("connect-retry", 120))
_SWITCHES: Final = ("blackhole", "unreachable", "prohibit", "reject")
_REDISTRIBUTED: Final = {"static": "static", "kernel": "static", "direct": "connected"}
_LISTED: Final = "fared announces it, and puts no route to it into the kernel"
_MULTIHOP: Final = (
    "BIRD has internal neighbors several hops away unless 'direct': of fared, it is on a link"
)
_WAITS: Final = "BIRD waits for the neighbor to connect; fared connects as well"
_ALL_LINKS: Final = "fared takes the networks of all interfaces: networks names some"


def assemble_bgp(bird: BirdBgp) -> set[str]:
    """Put all settings of BGP into the draft, and list what is not taken.

    Returns the protocols whose routes are announced, by name.
    """
    peers = [(key, peer) for peer in bird.peers if (key := _key(bird, peer)) is not None]
    if not peers:
        return set()
    families = [name for name in FAMILIES if any(name in peer.channels for _, peer in peers)]
    _router(bird, [peer for _, peer in peers], families)
    told = {key: exported(bird, peer) for key, peer in peers}
    own = {name for one in told.values() for name in one.classes if name != BGP}
    for name, routes in bird.classes.items():
        if name in own:
            _announce(bird, routes)
    for key, peer in peers:
        base = ("bgp", "neighbors", key)
        mine = [family for family in families if family in peer.channels]
        bird.draft.put(base, {}, peer.statement.source)
        if mine != families:
            bird.draft.put((*base, "address-families"), mine, peer.statement.source)
        _neighbor(bird, base, peer)
        put_import(bird, base, peer, mine)
        put_export(bird, base, peer, told[key], own)
    return own


def _router(bird: BirdBgp, peers: Sequence[BirdPeer], families: Sequence[str]) -> None:
    """Put what is of the router; the first neighbor that says it decides."""
    draft, first = bird.draft, peers[0]
    source = first.statement.source
    assert first.system is not None
    draft.put(("bgp", "as"), first.system.value, first.system.statement.source)
    if bird.merges is None:
        draft.put(("bgp", "max-paths"), 1, source, DEFAULT)
    else:
        draft.put(("bgp", "max-paths"), bird.merges.value, bird.merges.statement.source)
    if "ospf" in draft.tree:
        draft.put(("bgp", "preference"), 150, source, "in BIRD, routes of OSPF win")
    if len(families) == 1:
        draft.put(("bgp", "address-families"), families, source)
    for path, given in (item for peer in peers for item in peer.router.items()):
        at = path if path == ("router-id",) else ("bgp", *path)
        if draft.get(at) is None:
            draft.put(at, given.value, given.statement.source)
        elif draft.get(at) != given.value:
            draft.leave(given.statement.source, f"fared has one {path[-1]} for all neighbors")


# Neighbors


def _key(bird: BirdBgp, peer: BirdPeer) -> str | None:
    """Return the key of a neighbor; None: it is left out, and listed."""
    source, words = peer.statement.source, [line.words for line in peer.statement.inside or ()]
    given = peer.interface if peer.address is None else peer.address
    known = [one for one in bird.peers if one.system is not None]
    refusals = (
        (any(w[0] == "vrf" for w in words), ROUTER["vrf"]),
        (peer.system is None, "it has no 'local as'"),
        (given is None, "it has no 'neighbor', by address or by the interface of a link"),
        (peer.remote is None, "the AS of the neighbor is not said"),
        (not peer.channels, "it has no channel: no address family"),
    )
    for holds, reason in refusals:
        if holds:
            bird.draft.leave(source, reason)
            return None
    assert given is not None
    assert peer.system is not None
    if known[0].system is not None and peer.system.value != known[0].system.value:
        bird.draft.leave(peer.system.statement.source, NEIGHBOR["local-as"])
        return None
    key: str = given.value
    earlier = bird.peers[: bird.peers.index(peer)]
    if any(
        key in (one.address and one.address.value, one.interface and one.interface.value)
        for one in earlier
    ):
        bird.draft.leave(source, f"{key} is a neighbor already")
        return None
    return key


def _neighbor(bird: BirdBgp, base: Path, peer: BirdPeer) -> None:
    """Put who it is, and its settings, with defaults that BIRD and fared do not share."""
    draft, source = bird.draft, peer.statement.source
    assert peer.remote is not None
    draft.put((*base, "remote-as"), peer.remote.value, peer.remote.statement.source)
    settings = dict(peer.settings)
    if peer.address is None:
        settings.pop(("local-address",), None)
        if _waits(peer):
            draft.differ(source, _WAITS)
    for path, given in settings.items():
        draft.put((*base, *path), given.value, given.statement.source)
    hold = settings.get(("hold-time",))
    for name, value in _TIMERS:
        if (name,) not in settings:
            fitting = hold.value // 3 if name == "keepalive" and hold is not None else value
            draft.put((*base, name), fitting, source, DEFAULT)
    if ("maximum-prefixes",) not in settings:
        draft.put((*base, "maximum-prefixes"), "none", source, DEFAULT)
    if not internal(peer) and ("enforce-first-as",) not in settings:
        draft.put((*base, "enforce-first-as"), False, source, DEFAULT)
    words = [line.words[0] for line in peer.statement.inside or ()]
    if internal(peer) and "direct" not in words and peer.interface is None:
        draft.differ(source, _MULTIHOP)


def _waits(peer: BirdPeer) -> bool:
    lines = [line.words for line in peer.statement.inside or ()]
    return any(words[:2] == ["neighbor", "range"] for words in lines)


# What this router has itself


def _announce(bird: BirdBgp, routes: RouteClass) -> None:
    draft = bird.draft
    for given in routes.networks:
        before = draft.get(("bgp", "networks")) or []
        draft.put(("bgp", "networks"), [*before, given.value], given.statement.source)
        if "/" in given.value:
            draft.differ(given.statement.source, _LISTED)
    if routes.source is None:
        return
    draft.put(("bgp", "redistribute", routes.source), {}, routes.statement.source)
    if routes.source == "static":
        draft.differ(routes.statement.source, KERNEL_ONLY)
    elif routes.kind == "direct" and any(line.words[0] == "interface" for line in routes.inside):
        draft.differ(routes.statement.source, _ALL_LINKS)


def route_classes(statements: Sequence[BirdStatement]) -> dict[str, RouteClass]:
    """Return the protocols of a file that have routes of their own, by name."""
    found: dict[str, RouteClass] = {}
    for each in statements:
        match each.words:
            case ["protocol", "static" | "direct" | "kernel" | "ospf" as kind, *name]:
                inside = each.inside or []
                if any(line.words[0] == "disabled" and is_on(line.words[1:]) for line in inside):
                    continue
                learns = any(line.words[0] == "learn" and is_on(line.words[1:]) for line in inside)
                if kind == "kernel" and not learns:
                    continue
                word = next((one for one in name if one not in ("v2", "v3")), f"{kind}1")
                found[word] = _class(kind, each)
    return found


def _class(kind: str, statement: BirdStatement) -> RouteClass:
    networks = list(_networks(kind, statement.inside or []))
    if kind == "ospf":
        source: str | None = "ospf"
    elif kind == "static":
        routes = [line for line in statement.inside or () if line.words[0] == "route"]
        source = "static" if len(routes) > len(networks) else None
    else:
        source = None if networks else _REDISTRIBUTED[kind]
    return RouteClass(kind, networks, source, statement)


def _networks(kind: str, inside: Sequence[BirdStatement]) -> Iterator[Written]:
    for line in inside:
        match line.words:
            case ["route", prefix, word] if kind == "static" and word in _SWITCHES:
                yield Written(str(ip_network(prefix, strict=False)), line)
            case ["interface", *_] if kind == "direct":
                names = [token.text for token in line.tokens[1:] if token.quoted]
                if "-" not in line.words:
                    yield from (Written(name, line) for name in names)


def merged_paths(statements: Sequence[BirdStatement]) -> Written | None:
    """Return how many paths a kernel protocol merges; None: it uses the best one."""
    for each in statements:
        if each.words[:2] != ["protocol", "kernel"]:
            continue
        for line in each.inside or ():
            match line.words:
                case ["merge", "paths", *rest] if is_on([w for w in rest[:1] if w != "limit"]):
                    limit = rest[rest.index("limit") + 1] if "limit" in rest else "16"
                    return Written(int(limit), line)
    return None
