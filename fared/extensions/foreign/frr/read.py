"""``frr.conf`` as a draft of fared's configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.frr.assemble import assemble
from fared.extensions.foreign.frr.bgp import BGP, FAMILIES, FrrBgpFamily
from fared.extensions.foreign.frr.context import (
    FrrBgp,
    FrrFile,
    FrrIsis,
    FrrOspf,
    FrrPort,
    Given,
)
from fared.extensions.foreign.frr.interface import RULES
from fared.extensions.foreign.frr.keys import read_chain
from fared.extensions.foreign.frr.lines import FrrStatement, read_statements
from fared.extensions.foreign.frr.routers import ISIS, OSPF
from fared.extensions.foreign.machine import Machine
from fared.extensions.foreign.rules import (
    NO_SETTING,
    TAKES_BACK,
    Rule,
    apply_rules,
    block,
    number,
)


class _Head(NamedTuple):
    """The first words of a block, or of a line at the top, how many it has at least, its reader."""

    words: tuple[str, ...]
    least: int
    read: Callable[[FrrFile, FrrStatement], None]


_NO_VRF: Final = "fared runs in one routing table and has no VRFs"
_BFD: Final = MappingProxyType(
    {
        "detect-multiplier": ("multiplier", number),
        "receive-interval": ("min-rx", lambda text: f"{number(text)}ms"),
        "transmit-interval": ("min-tx", lambda text: f"{number(text)}ms"),
    }
)
_BLOCKS: Final = MappingProxyType(
    {
        "ospf6": "fared has no OSPFv3: IS-IS routes IPv6",
    }
)
_ONE_BGP: Final = "fared runs one instance of BGP"
_STATIC: Final = (
    "fared makes no static routes: 'ip route add ... proto static', or the system's configuration"
)
_QUIET: Final = frozenset(
    ("frr", "service", "log", "line", "password", "enable", "agentx", "debug")
)
"""First words of lines that are about FRR's own processes."""


def read_frr(text: str, machine: Machine) -> Draft:
    """Read an integrated file or one of a daemon; ``machine``: what the kernel has."""
    draft = Draft()
    frr = FrrFile(draft)
    for statement in read_statements(text):
        try:
            _head(statement.words).read(frr, statement)
        except ValueError as error:
            draft.leave(statement.source, str(error))
    assemble(frr, machine)
    return draft


def _head(words: list[str]) -> _Head:
    """Return what reads a statement. Raises ValueError if it lacks words."""
    found = next((each for each in _HEADS if words[: len(each.words)] == list(each.words)), None)
    if found is not None and len(words) < found.least:
        raise ValueError("words are missing")
    return _Head((), 0, _unknown) if found is None else found


def _unknown(frr: FrrFile, statement: FrrStatement) -> None:
    reason = TAKES_BACK if statement.words[0] == "no" else NO_SETTING
    if statement.words[0] in _QUIET:
        reason = "about FRR's own processes"
    frr.draft.leave(statement.source, block(statement, reason))


def _inside(frr: FrrFile, rules: tuple[Rule, ...], context: object, head: FrrStatement) -> None:
    """Read the lines of a block."""
    for line in head.inside:
        reason = apply_rules(rules, context, line)
        if reason is not None:
            frr.draft.leave(line.source, reason)


def _interface(frr: FrrFile, head: FrrStatement) -> None:
    name = head.words[1]
    vrf = head.words[3:4] if head.words[2:3] == ["vrf"] else []
    vrf += [line.words[1] for line in head.inside if line.words[0] == "vrf"]
    if vrf and vrf != ["default"]:
        frr.draft.leave(head.source, block(head, _NO_VRF))
        return
    port = frr.ports.setdefault(name, FrrPort(name, head))
    _inside(frr, RULES, port, head)


def _ospf(frr: FrrFile, head: FrrStatement) -> None:
    instance = head.words[2:]
    if instance[:1] == ["vrf"]:
        frr.draft.leave(head.source, block(head, _NO_VRF))
        return
    if frr.ospf is not None and instance:
        frr.draft.leave(head.source, block(head, "fared runs one instance of OSPF"))
        return
    frr.ospf = frr.ospf or FrrOspf(head)
    _inside(frr, OSPF, frr.ospf, head)


def _isis(frr: FrrFile, head: FrrStatement) -> None:
    if head.words[3:4] == ["vrf"]:
        frr.draft.leave(head.source, block(head, _NO_VRF))
        return
    if frr.isis is not None and frr.isis.statement.words[:3] != head.words[:3]:
        frr.draft.leave(head.source, block(head, "fared runs one instance of IS-IS"))
        return
    frr.isis = frr.isis or FrrIsis(head)
    _inside(frr, ISIS, frr.isis, head)


def _bgp(frr: FrrFile, head: FrrStatement) -> None:
    if head.words[3:4] in (["vrf"], ["view"]):
        frr.draft.leave(head.source, block(head, _NO_VRF))
        return
    if frr.bgp is not None and frr.bgp.statement.words != head.words:
        frr.draft.leave(head.source, block(head, _ONE_BGP))
        return
    frr.bgp = frr.bgp or FrrBgp(head, number(head.words[2]), frr.datacenter)
    _inside(frr, BGP, FrrBgpFamily(frr.bgp, FAMILIES[0]), head)
    blocks, frr.bgp.blocks = frr.bgp.blocks, []
    for family, inside in blocks:
        _inside(frr, BGP, FrrBgpFamily(frr.bgp, family), inside)


def _defaults(frr: FrrFile, head: FrrStatement) -> None:
    frr.datacenter = head.words[2] == "datacenter"


def _router(frr: FrrFile, head: FrrStatement) -> None:
    kind = head.words[1] if len(head.words) > 1 else ""
    frr.draft.leave(head.source, block(head, _BLOCKS.get(kind, f"fared has no {kind.upper()}")))


def _vrf(frr: FrrFile, head: FrrStatement) -> None:
    frr.draft.leave(head.source, block(head, _NO_VRF))


def _hostname(frr: FrrFile, head: FrrStatement) -> None:
    frr.draft.put(("hostname",), " ".join(head.words[1:]), head.source)


def _router_id(frr: FrrFile, head: FrrStatement) -> None:
    frr.router_id = Given(head.words[-1], head)


def _prefix_list(frr: FrrFile, head: FrrStatement) -> None:
    frr.prefix_lists.setdefault(head.words[2], []).append(head)


def _access_list(frr: FrrFile, head: FrrStatement) -> None:
    frr.access_lists.setdefault(head.words[1], []).append(head)


def _route_map(frr: FrrFile, head: FrrStatement) -> None:
    frr.route_maps.setdefault(head.words[1], []).append(head)


def _key_chain(frr: FrrFile, head: FrrStatement) -> None:
    frr.key_chains[head.words[2]] = read_chain(frr.draft, head)


def _static(frr: FrrFile, head: FrrStatement) -> None:
    frr.draft.leave(head.source, _STATIC)


def _bfd(frr: FrrFile, head: FrrStatement) -> None:
    for each in head.inside:
        match each.words:
            case ["profile", name]:
                frr.draft.put(("bfd", "profiles", name), {}, each.source)
                for path, value, line in _profile(frr, each):
                    frr.draft.put(("bfd", "profiles", name, path), value, line.source)
            case _:
                reason = "fared starts sessions with neighbors of its protocols"
                frr.draft.leave(each.source, block(each, reason))


def _profile(frr: FrrFile, profile: FrrStatement) -> Iterator[tuple[str, Any, FrrStatement]]:
    for line in profile.inside:
        words = line.words
        if words[0] in _BFD and len(words) == 2:
            name, read = _BFD[words[0]]
            yield name, read(words[1]), line
        else:
            frr.draft.leave(line.source, TAKES_BACK if words[0] == "no" else NO_SETTING)


_HEADS: Final = (
    _Head(("interface",), 2, _interface),
    _Head(("router", "ospf"), 2, _ospf),
    _Head(("router", "isis"), 3, _isis),
    _Head(("router", "bgp"), 3, _bgp),
    _Head(("router",), 2, _router),
    _Head(("frr", "defaults"), 3, _defaults),
    _Head(("vrf",), 2, _vrf),
    _Head(("hostname",), 2, _hostname),
    _Head(("ip", "router-id"), 3, _router_id),
    _Head(("router-id",), 2, _router_id),
    _Head(("ip", "prefix-list"), 5, _prefix_list),
    _Head(("ipv6", "prefix-list"), 5, _prefix_list),
    _Head(("access-list",), 4, _access_list),
    _Head(("route-map",), 4, _route_map),
    _Head(("key", "chain"), 3, _key_chain),
    _Head(("ip", "route"), 3, _static),
    _Head(("ipv6", "route"), 3, _static),
    _Head(("bfd",), 1, _bfd),
)
"""Blocks and lines at the top."""
