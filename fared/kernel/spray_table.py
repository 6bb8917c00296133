"""The table of sprayed packets in the language of nftables: names, chains, and changes of them.

One table of the family inet, for IPv4 and IPv6. Its chain at the prerouting hook concerns forwarded
packets, before they are routed: those that this router sends itself pass another hook, and those to
its addresses are found in the table local, before any mark counts. Packets that another program has
marked are left alone. ``spray_listing`` reads what is written here.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6
from fared.paths.fib.settings import SprayMatch
from fared.paths.fib.spray import (
    Block,
    DeleteBlock,
    DeleteMark,
    DeleteMatch,
    DeleteRound,
    PutBlock,
    PutMark,
    PutMatch,
    PutRound,
    SprayOperation,
    SprayRound,
)

TABLE = "fared"
PRIORITY = -140
"""After mangle (-150): the marks of others are set by then."""
BLOCKS = {FAMILY_IPV4: "ipv4", FAMILY_IPV6: "ipv6"}
HOP, GROUP, FLOWS = "hop_", "group_", "flows_"
BASE, MARKED, SPRAY, MARKS = "packets", "marked", "spray", "marks"
PORT = "udp", "tcp"
_MOST_FLOWLETS = 1 << 16
"""Flowlets of a group; packets of further ones take the path of their flow."""
SEED = 4791
_FLOW = {
    protocol: f"jhash {protocol} saddr . {protocol} daddr . meta l4proto . th sport . th dport"
    f" mod 4294967295 seed {SEED}"
    for protocol in ("ip", "ip6")
}
"""The number of a flow. nft 1.0.6 aborts on maps with these fields themselves as key."""


class Transaction:
    """The text of some operations. Chains come before maps, whose elements refer to them."""

    def __init__(self, operations: Iterable[SprayOperation]) -> None:
        operations = list(operations)
        self._parts: dict[int, list[str]] = defaultdict(list)
        self._anew = any(isinstance(o, PutMatch | DeleteMatch) for o in operations)
        for operation in operations:
            self._add(operation)

    @property
    def text(self) -> str:
        """All commands, in order."""
        return "".join(f"{line}\n" for line in self._lines())

    def pieces(self, size: int) -> Iterator[str]:
        """Yield the same as several transactions of about ``size`` characters.

        Between two of them each chain has its former or its new rules; a new table leads packets to
        none of its groups before the last ones, so that they follow their flow.
        """
        piece = ""
        for line in self._lines():
            if piece and len(piece) + len(line) > size:
                yield piece
                piece = ""
            piece += f"{line}\n"
        yield piece

    def _lines(self) -> Iterator[str]:
        for _, part in sorted(self._parts.items()):
            yield from part

    def _add(self, operation: SprayOperation) -> None:
        """Add the statements of an operation, each to the part that is executed in its turn."""
        match operation:
            case PutMatch(match):
                self._begin(match)
            case DeleteMatch():
                self._parts[0] += [f"add table inet {TABLE}", f"delete table inet {TABLE}"]
            case PutMark(nexthop_id):
                self._chain(f"{HOP}{nexthop_id}", [f"meta mark set {nexthop_id} counter"])
                self._element("add", MARKS, f"{nexthop_id} : goto {HOP}{nexthop_id}")
            case DeleteMark(nexthop_id) if not self._anew:
                self._parts[5].append(f"delete element inet {TABLE} {MARKS} {{ {nexthop_id} }}")
                self._parts[6].append(f"delete chain inet {TABLE} {HOP}{nexthop_id}")
            case PutRound():
                self._round(operation)
            case DeleteRound(group_id, former):
                self._parts[5].append(f"delete chain inet {TABLE} {GROUP}{group_id}")
                self._drop_flows(group_id, former)
            case PutBlock(block, group_id):
                target = f"{_span(block)} : goto {GROUP}{group_id}"
                self._element("add", BLOCKS[block.family], target)
            case DeleteBlock(block):
                self._element("delete", BLOCKS[block.family], _span(block))

    def _begin(self, match: SprayMatch) -> None:
        add = f"add table inet {TABLE}"
        self._parts[0] += [add, f"delete table inet {TABLE}", add]
        for family, name in BLOCKS.items():
            kind = f"type ipv{family}_addr : verdict; flags interval;"
            self._parts[2].append(f"add map inet {TABLE} {name} {{ {kind} }}")
        self._parts[2].append(f"add map inet {TABLE} {MARKS} {{ type mark : verdict; }}")
        self._chain(MARKED, [f"meta mark vmap @{MARKS}"])
        self._chain(SPRAY, ["ip daddr vmap @ipv4", "ip6 daddr vmap @ipv6"])
        hook = f"{{ type filter hook prerouting priority {PRIORITY}; policy accept; }}"
        self._chain(BASE, ["meta mark != 0 return", *_selecting(match)], hook)

    def _chain(self, name: str, rules: Iterable[str], hook: str = "") -> None:
        """Create a chain or replace its rules."""
        self._parts[1].append(f"add chain inet {TABLE} {name} {hook}")
        added = (f"add rule inet {TABLE} {name} {rule}" for rule in rules)
        self._parts[3].append("\n".join((f"flush chain inet {TABLE} {name}", *added)))

    def _element(self, verb: str, name: str, content: str) -> None:
        self._parts[4].append(f"{verb} element inet {TABLE} {name} {{ {content} }}")

    def _round(self, operation: PutRound) -> None:
        """Write the chain of a group, and for flowlets the map that remembers their next hops."""
        group_id, former = operation.group_id, operation.former
        order, gap, small = operation.round
        if former is not None and former.gap != gap:
            self._drop_flows(group_id, former)
            former = None
        if not gap:
            self._chain(f"{GROUP}{group_id}", _packet_rules(order, small))
            return
        name = flows_name(group_id, gap)
        if former is None:
            self._parts[2].append(
                f"add map inet {TABLE} {name} {{ typeof numgen inc mod 4294967295 : meta mark;"
                f" flags dynamic,timeout; size {_MOST_FLOWLETS}; timeout {gap}ms; }}"
            )
        elif not {*former.order} <= {*order}:  # its flowlets would keep a next hop that left
            self._parts[3].append(f"flush map inet {TABLE} {name}")
        targets = ", ".join(f"{at} : {hop}" for at, hop in enumerate(order))
        chosen = f"numgen inc mod {len(order)} map {{ {targets} }}"
        self._chain(f"{GROUP}{group_id}", flowlet_rules(name, chosen))

    def _drop_flows(self, group_id: int, former: SprayRound) -> None:
        if former.gap:
            self._parts[7].append(f"delete map inet {TABLE} {flows_name(group_id, former.gap)}")


def _selecting(match: SprayMatch) -> Iterator[str]:
    """Yield the rules that send the right packets to the chain ``spray``."""
    if match == SprayMatch():
        yield "goto spray"
    if match.dscp:
        yield f"ip dscp {{ {_listed(match.dscp)} }} goto spray"
        yield f"ip6 dscp {{ {_listed(match.dscp)} }} goto spray"
    for protocol, ports in zip(PORT, (match.udp_ports, match.tcp_ports), strict=True):
        for side in ("dport", "sport") if ports else ():
            yield f"{protocol} {side} {{ {_listed(ports)} }} goto spray"


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _packet_rules(order: Sequence[int], small: int) -> Iterator[str]:
    """Yield the rules of a group whose packets go round: each rule with a number has a counter.

    The mark is the place in the round before it is that of a next hop, so that both counters lead
    to one map, which is most of what a change writes.
    """
    number = f"meta mark set numgen inc mod {len(order)} offset 1"
    if small:
        yield f"meta length < {small} {number}"
    yield f"meta mark 0 {number}"
    targets = ", ".join(f"{at} : goto {HOP}{hop}" for at, hop in enumerate(order, 1))
    yield f"meta mark vmap {{ {targets} }}"


def flowlet_rules(flows: str, chosen: str) -> Iterator[str]:
    """Yield the rules of a group whose flowlets keep their next hop.

    A packet that no flowlet is known for takes the next of the round. If it cannot be recorded
    (fragments have no ports; too many flowlets), it takes the path of its flow.
    """
    for flow in _FLOW.values():
        yield f"meta mark set {flow} map @{flows}"
    yield f"meta mark 0 meta mark set {chosen}"
    for flow in _FLOW.values():
        yield f"update @{flows} {{ {flow} : meta mark }} goto {MARKED}"
    yield "meta mark set 0"


def flows_name(group_id: int, gap: int) -> str:
    """Return the name of the map of flowlets of a group."""
    return f"{FLOWS}{gap}_{group_id}"


def _span(block: Block) -> str:
    first, last = _address(block.family, block.first), _address(block.family, block.last)
    return first if first == last else f"{first}-{last}"


def _address(family: int, number: int) -> str:
    kind = ipaddress.IPv4Address if family == FAMILY_IPV4 else ipaddress.IPv6Address
    return str(kind(number))
