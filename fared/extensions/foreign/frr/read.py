"""``frr.conf`` as a draft of fared's configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, Final

from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.frr.assemble import assemble
from fared.extensions.foreign.frr.context import FrrFile, FrrIsis, FrrOspf, FrrPort, Given
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
        "bgp": "fared has no BGP",
    }
)
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
        words = statement.words
        reader = next((read for head, read in _HEADS if words[: len(head)] == list(head)), _unknown)
        try:
            reader(frr, statement)
        except ValueError as error:
            draft.leave(statement.source, str(error))
    assemble(frr, machine)
    return draft


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
                reason = "fared starts sessions with neighbors of OSPF and IS-IS"
                frr.draft.leave(each.source, block(each, reason))


def _profile(frr: FrrFile, profile: FrrStatement) -> Iterator[tuple[str, Any, FrrStatement]]:
    for line in profile.inside:
        words = line.words
        if words[0] in _BFD and len(words) == 2:
            name, read = _BFD[words[0]]
            yield name, read(words[1]), line
        else:
            frr.draft.leave(line.source, TAKES_BACK if words[0] == "no" else NO_SETTING)


_HEADS: Final[tuple[tuple[tuple[str, ...], Callable[[FrrFile, FrrStatement], None]], ...]] = (
    (("interface",), _interface),
    (("router", "ospf"), _ospf),
    (("router", "isis"), _isis),
    (("router", "openfabric"), _router),
    (("router",), _router),
    (("vrf",), _vrf),
    (("hostname",), _hostname),
    (("ip", "router-id"), _router_id),
    (("router-id",), _router_id),
    (("ip", "prefix-list"), _prefix_list),
    (("ipv6", "prefix-list"), _prefix_list),
    (("route-map",), _route_map),
    (("key", "chain"), _key_chain),
    (("ip", "route"), _static),
    (("ipv6", "route"), _static),
    (("bfd",), _bfd),
)
"""Blocks and lines at the top, by their first words."""
