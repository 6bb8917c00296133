"""``bird.conf`` as a draft of fared's configuration: OSPF for IPv4, BGP, and what they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from fared.extensions.foreign.bird.bgp import read_peer
from fared.extensions.foreign.bird.bgp_assemble import assemble_bgp, merged_paths, route_classes
from fared.extensions.foreign.bird.bgp_policy import BirdBgp
from fared.extensions.foreign.bird.export import Others, is_on, static_default
from fared.extensions.foreign.bird.interface import read_bfd
from fared.extensions.foreign.bird.ospf import RULES, BirdOspf
from fared.extensions.foreign.bird.parse import BirdStatement, Files, read_statements
from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.rules import NO_SETTING, apply_rules, block

Sessions = dict[str, dict[str, Any]]
"""Options of BFD by pattern of interfaces."""
_NO_NEED: Final = "fared does so itself"
_PROTOCOLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "device": _NO_NEED,
        "kernel": "fared writes its routes itself: 'fib' has table, protocol number and metric",
        "direct": "fared reads the kernel's addresses: 'redistribute: connected'",
        "static": "fared makes no static routes: 'ip route add ... proto static', or the system's"
        " configuration",
    }
)
_CONFIGURED: Final = frozenset(("define", "function", "filter"))
_LEARNS: Final = frozenset(("learn",))


def read_bird(text: str, path: Path, read: Files) -> Draft:
    """Read a file; ``path`` is its own, from which included ones are found.

    Raises BirdError if it is no file of BIRD, or includes one that cannot be read.
    """
    draft = Draft()
    statements = read_statements(text, path, read)
    others = _others(statements)
    bfd = _bfd(draft, statements)
    running, peers, rest = False, [], []
    for each in statements:
        words = each.words
        if words[:2] == ["protocol", "ospf"]:
            running = _ospf(draft, each, others, bfd, running=running)
        elif words[:2] == ["protocol", "bgp"]:
            peers.append(read_peer(draft, each))
        elif words[0] == "protocol":
            rest.append(each)
        elif reader := _HEADS.get(words[0]):
            reader(draft, each)
        elif words[0] not in _CONFIGURED:
            draft.leave(each.source, block(each, NO_SETTING))
    classes, merges = route_classes(statements), merged_paths(statements)
    told = assemble_bgp(BirdBgp(draft, peers, others, classes, bfd, merges))
    announced = [classes[name].statement for name in told]
    for each in rest:
        if not any(each is one for one in announced):
            _protocol(draft, each)
    return draft


def _others(statements: list[BirdStatement]) -> Others:
    """Return what OSPF may refer to: other protocols, and filters."""
    others = Others()
    for each in statements:
        match each.words:
            case ["filter", name, *_]:
                others.filters[name] = each
            case ["protocol", "static" | "direct" | "kernel" as kind, *name]:
                inside = [line.words for line in each.inside or ()]
                disabled = any(words[0] == "disabled" and is_on(words[1:]) for words in inside)
                learns = any(words[0] in _LEARNS and is_on(words[1:]) for words in inside)
                if disabled or (kind == "kernel" and not learns):
                    continue
                others.kinds[name[0] if name else f"{kind}1"] = kind
                others.static_default |= kind == "static" and static_default(each)
    return others


def _bfd(draft: Draft, statements: list[BirdStatement]) -> Sessions:
    """Return the options of BFD by pattern of interfaces."""
    found: Sessions = {}
    for each in statements:
        if each.words[:2] != ["protocol", "bfd"]:
            continue
        for line in each.inside or ():
            names = [token.text for token in line.tokens[1:] if token.quoted] or ["*"]
            if line.words[0] != "interface":
                draft.leave(line.source, "fared starts sessions with neighbors of OSPF and BGP")
                continue
            options = {path: value for path, value, _ in read_bfd(draft, line.inside or ())}
            found |= {name: options for name in names if name not in found}
    return found


def _ospf(
    draft: Draft,
    head: BirdStatement,
    others: Others,
    bfd: dict[str, dict[str, Any]],
    *,
    running: bool,
) -> bool:
    """Read an instance; return whether one is taken now."""
    inside = head.inside or []
    words = [line.words for line in inside]
    refusals = (
        (head.words[2:3] == ["v3"], "fared has no OSPFv3: IS-IS routes IPv6"),
        (running, "fared runs one instance of OSPF"),
        (any(w[0] == "vrf" for w in words), "fared runs in one routing table and has no VRFs"),
        (any(w[0] == "disabled" and is_on(w[1:]) for w in words), "it is disabled"),
    )
    for holds, reason in refusals:
        if holds:
            draft.leave(head.source, block(head, reason))
            return running
    ospf = BirdOspf(draft, others, bfd)
    for line in inside:
        why = apply_rules(RULES, ospf, line)
        if why is not None:
            draft.leave(line.source, block(line, why))
    return True


def _protocol(draft: Draft, head: BirdStatement) -> None:
    kind = head.words[1] if len(head.words) > 1 else ""
    if kind == "bfd":
        return
    reason = _PROTOCOLS.get(kind, f"fared has no {kind.upper()}")
    draft.leave(head.source, block(head, reason))


def _router_id(draft: Draft, line: BirdStatement) -> None:
    match line.words:
        case ["router", "id", text]:
            draft.put(("router-id",), text, line.source)
        case _:
            draft.leave(line.source, "fared takes the highest address of a loopback, or an address")


def _hostname(draft: Draft, line: BirdStatement) -> None:
    draft.put(("hostname",), line.words[-1], line.source)


def _own(draft: Draft, line: BirdStatement) -> None:
    draft.leave(line.source, "about BIRD's own process")


_HEADS: Final[Mapping[str, Callable[[Draft, BirdStatement], None]]] = MappingProxyType(
    {
        "router": _router_id,
        "hostname": _hostname,
        "log": _own,
        "debug": _own,
        "timeformat": _own,
        "watchdog": _own,
        "mrtdump": _own,
        "threads": _own,
    }
)
