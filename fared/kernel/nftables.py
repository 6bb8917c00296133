"""nftables: sprayed packets get the mark of a next hop (``fared.fib.spray``).

One table of the family inet, for IPv4 and IPv6. Its chain at the prerouting hook concerns forwarded
packets, before they are routed: those that this router sends itself pass another hook, and those to
its addresses are found in the table local, before any mark counts. Packets that another program has
marked are left alone.

``nft`` is a program, because libnftables has no library of its own on PyPI that is maintained. A
list of operations is one transaction: the kernel changes from the old state to the new one between
two packets. ``read`` parses ``nft --json list table``, and takes everything that ``Transaction``
would not have written for damage, which the planner repairs.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6
from fared.fib.settings import SprayMatch
from fared.fib.spray import (
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
    SprayState,
)

TABLE = "fared"
_PRIORITY = -140
"""After mangle (-150): the marks of others are set by then."""
_TIMEOUT = 10.0
_MOST_FLOWLETS = 1 << 16
"""Flowlets of a group; packets of further ones take the path of their flow."""
_SEED = 4791
_BLOCKS = {FAMILY_IPV4: "ipv4", FAMILY_IPV6: "ipv6"}
_HOP, _GROUP, _FLOWS = "hop_", "group_", "flows_"
_BASE, _MARKED = "packets", "marked"
_FLOW = {
    protocol: f"jhash {protocol} saddr . {protocol} daddr . meta l4proto . th sport . th dport"
    f" mod 4294967295 seed {_SEED}"
    for protocol in ("ip", "ip6")
}
"""The number of a flow. nft 1.0.6 aborts on maps with these fields themselves as key."""
_PORT = "udp", "tcp"
Json = dict[str, Any]


class Counted(NamedTuple):
    """Packets and bytes that left with a mark, since it was written."""

    packets: int
    size: int


class NftError(OSError):
    """nft is missing, failed, or refused a transaction; the text is its own."""


def find_nft() -> str | None:
    """Return the path of ``nft``."""
    return shutil.which("nft") or shutil.which("nft", path="/usr/sbin:/sbin")


class Nft:
    """Runs ``nft`` in the network namespace of the calling thread."""

    def __init__(self, program: str) -> None:
        self._program = program

    def apply(self, operations: Iterable[SprayOperation]) -> None:
        """Execute operations as one transaction. Raises NftError."""
        text = Transaction(operations).text
        if text:
            self._run(["-f", "-"], text)

    def read(self) -> tuple[SprayState, dict[int, Counted]]:
        """Return the content of the table, and the packets of each mark. Raises NftError."""
        return parse(self._listed())

    def _listed(self) -> list[Json]:
        try:
            listed = self._run(["-j", "-n", "list", "table", "inet", TABLE])
        except NftError as error:
            if error.errno == errno.ENOENT:
                return []
            raise
        try:
            found: list[Json] = json.loads(listed)["nftables"]
        except (ValueError, KeyError, TypeError):
            raise NftError(errno.EPROTO, "nft printed no list") from None
        return found

    def _run(self, arguments: Sequence[str], text: str = "") -> str:
        try:
            done = subprocess.run(
                [self._program, *arguments],
                input=text,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NftError(errno.ETIMEDOUT, f"no answer within {_TIMEOUT:g} s") from None
        except OSError as error:
            raise NftError(error.errno, f"{self._program}: {error.strerror}") from None
        if done.returncode:
            lines = done.stderr.splitlines()
            words = lines[0].strip() if lines else f"status {done.returncode}"
            missing = "No such file or directory" in words
            raise NftError(errno.ENOENT if missing else errno.EINVAL, words)
        return done.stdout


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
        return "".join(f"{line}\n" for _, part in sorted(self._parts.items()) for line in part)

    def _add(self, operation: SprayOperation) -> None:
        match operation:
            case PutMatch(match):
                self._begin(match)
            case DeleteMatch():
                self._parts[0] += [f"add table inet {TABLE}", f"delete table inet {TABLE}"]
            case PutMark(nexthop_id):
                self._chain(f"{_HOP}{nexthop_id}", [f"meta mark set {nexthop_id} counter"])
                self._element("add", "marks", f"{nexthop_id} : goto {_HOP}{nexthop_id}")
            case DeleteMark(nexthop_id) if not self._anew:
                self._parts[5].append(f"delete element inet {TABLE} marks {{ {nexthop_id} }}")
                self._parts[6].append(f"delete chain inet {TABLE} {_HOP}{nexthop_id}")
            case PutRound():
                self._round(operation)
            case DeleteRound(group_id, former):
                self._parts[5].append(f"delete chain inet {TABLE} {_GROUP}{group_id}")
                self._drop_flows(group_id, former)
            case PutBlock(block, group_id):
                target = f"{_span(block)} : goto {_GROUP}{group_id}"
                self._element("add", _BLOCKS[block.family], target)
            case DeleteBlock(block):
                self._element("delete", _BLOCKS[block.family], _span(block))

    def _begin(self, match: SprayMatch) -> None:
        add = f"add table inet {TABLE}"
        self._parts[0] += [add, f"delete table inet {TABLE}", add]
        for family, name in _BLOCKS.items():
            kind = f"type ipv{family}_addr : verdict; flags interval;"
            self._parts[2].append(f"add map inet {TABLE} {name} {{ {kind} }}")
        self._parts[2].append(f"add map inet {TABLE} marks {{ type mark : verdict; }}")
        self._chain(_MARKED, ["meta mark vmap @marks"])
        self._chain("spray", ["ip daddr vmap @ipv4", "ip6 daddr vmap @ipv6"])
        hook = f"{{ type filter hook prerouting priority {_PRIORITY}; policy accept; }}"
        self._chain(_BASE, ["meta mark != 0 return", *_selecting(match)], hook)

    def _chain(self, name: str, rules: Iterable[str], hook: str = "") -> None:
        """Create a chain or replace its rules."""
        self._parts[1].append(f"add chain inet {TABLE} {name} {hook}")
        self._parts[3].append(f"flush chain inet {TABLE} {name}")
        self._parts[3] += [f"add rule inet {TABLE} {name} {rule}" for rule in rules]

    def _element(self, verb: str, name: str, content: str) -> None:
        self._parts[4].append(f"{verb} element inet {TABLE} {name} {{ {content} }}")

    def _round(self, operation: PutRound) -> None:
        group_id, (order, gap), former = operation.group_id, operation.round, operation.former
        number = f"numgen inc mod {len(order)}"
        if former is not None and former.gap != gap:
            self._drop_flows(group_id, former)
            former = None
        if not gap:
            targets = ", ".join(f"{at} : goto {_HOP}{hop}" for at, hop in enumerate(order))
            self._chain(f"{_GROUP}{group_id}", [f"{number} vmap {{ {targets} }}"])
            return
        name = _flows_name(group_id, gap)
        if former is None:
            self._parts[2].append(
                f"add map inet {TABLE} {name} {{ typeof numgen inc mod 4294967295 : meta mark;"
                f" flags dynamic,timeout; size {_MOST_FLOWLETS}; timeout {gap}ms; }}"
            )
        elif not {*former.order} <= {*order}:  # its flowlets would keep a next hop that left
            self._parts[3].append(f"flush map inet {TABLE} {name}")
        targets = ", ".join(f"{at} : {hop}" for at, hop in enumerate(order))
        self._chain(f"{_GROUP}{group_id}", _flowlet_rules(name, f"{number} map {{ {targets} }}"))

    def _drop_flows(self, group_id: int, former: SprayRound) -> None:
        if former.gap:
            self._parts[7].append(f"delete map inet {TABLE} {_flows_name(group_id, former.gap)}")


def _selecting(match: SprayMatch) -> Iterator[str]:
    """Yield the rules that send the right packets to the chain ``spray``."""
    if match == SprayMatch():
        yield "goto spray"
    if match.dscp:
        yield f"ip dscp {{ {_listed(match.dscp)} }} goto spray"
        yield f"ip6 dscp {{ {_listed(match.dscp)} }} goto spray"
    for protocol, ports in zip(_PORT, (match.udp_ports, match.tcp_ports), strict=True):
        for side in ("dport", "sport") if ports else ():
            yield f"{protocol} {side} {{ {_listed(ports)} }} goto spray"


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _flowlet_rules(flows: str, chosen: str) -> Iterator[str]:
    """Yield the rules of a group whose flowlets keep their next hop.

    A packet that no flowlet is known for takes the next of the round. If it cannot be recorded
    (fragments have no ports; too many flowlets), it takes the path of its flow.
    """
    for flow in _FLOW.values():
        yield f"meta mark set {flow} map @{flows}"
    yield f"meta mark 0 meta mark set {chosen}"
    for flow in _FLOW.values():
        yield f"update @{flows} {{ {flow} : meta mark }} goto {_MARKED}"
    yield "meta mark set 0"


def _flows_name(group_id: int, gap: int) -> str:
    return f"{_FLOWS}{gap}_{group_id}"


def _span(block: Block) -> str:
    first, last = _address(block.family, block.first), _address(block.family, block.last)
    return first if first == last else f"{first}-{last}"


def _address(family: int, number: int) -> str:
    kind = ipaddress.IPv4Address if family == FAMILY_IPV4 else ipaddress.IPv6Address
    return str(kind(number))


# --- reading


def parse(listed: Iterable[Json]) -> tuple[SprayState, dict[int, Counted]]:
    """Return the state that a listing shows, and the packets of each mark."""
    found = _Listing(listed)
    if not found.table:
        return SprayState(), {}
    try:
        return found.state(), found.counted
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return SprayState(damaged=True, marks=dict.fromkeys(found.counted, 0)), found.counted


class _Listing:
    """The objects of a listing, by name."""

    def __init__(self, listed: Iterable[Json]) -> None:
        self.table = False
        self.counted: dict[int, Counted] = {}
        self._chains: dict[str, Json] = {}
        self._rules: dict[str, list[list[Any]]] = defaultdict(list)
        self._maps: dict[str, Json] = {}
        for entry in listed:
            self.table |= "table" in entry
            if "chain" in entry:
                self._chains[entry["chain"]["name"]] = entry["chain"]
            elif "map" in entry:
                self._maps[entry["map"]["name"]] = entry["map"]
            elif "rule" in entry:
                self._rules[entry["rule"]["chain"]].append(entry["rule"]["expr"])

    def state(self) -> SprayState:
        """Return the state. Raises what a lookup raises if it was not written by fared."""
        marks = {i: self._mark(i) for i in self._numbered(_HOP)}
        state = SprayState(self._match(), marks, self._rounds(), self._blocks())
        known = {_BASE, _MARKED, "spray", *(f"{_HOP}{i}" for i in marks)}
        known |= {f"{_GROUP}{i}" for i in state.rounds}
        flows = {_flows_name(i, each.gap) for i, each in state.rounds.items() if each.gap}
        maps = {"marks", *_BLOCKS.values(), *flows}
        elements = {key: _target(to) for key, to in self._maps["marks"].get("elem", ())}
        state.damaged = (
            known != {*self._chains}
            or maps != {*self._maps}
            or elements != {i: f"{_HOP}{i}" for i in marks}
            or self._rules[_MARKED] != [[_vmap({"meta": {"key": "mark"}}, "@marks")]]
            or self._rules["spray"] != [[_vmap(_daddr(p), f"@{m}")] for p, m in _DADDR]
        )
        return state

    def _numbered(self, start: str) -> list[int]:
        return [int(name[len(start) :]) for name in self._chains if name.startswith(start)]

    def _match(self) -> SprayMatch:
        base = self._chains[_BASE]
        if (base["hook"], base["prio"], base["policy"]) != ("prerouting", _PRIORITY, "accept"):
            raise ValueError(base)
        first, *rest = self._rules[_BASE]
        numbers: dict[tuple[str, str], tuple[int, ...]] = {}
        for compared, verdict in (r for r in rest if len(r) == 2):
            field = compared["match"]["left"]["payload"]
            right = compared["match"]["right"]
            values = right["set"] if isinstance(right, dict) else [right]
            numbers[field["protocol"], field["field"]] = tuple(values)
            _expect(verdict, {"goto": {"target": "spray"}})
        _expect(first, [_comparison("!=", {"meta": {"key": "mark"}}, 0), {"return": None}])
        found = SprayMatch(
            numbers.get(("ip", "dscp"), ()),
            numbers.get(("udp", "dport"), ()),
            numbers.get(("tcp", "dport"), ()),
        )
        _expect(rest, list(_selecting_listed(found)))
        return found

    def _mark(self, nexthop_id: int) -> int:
        """Count its packets; 0, since the family shows in its routes only."""
        ((mangle, counter),) = self._rules[f"{_HOP}{nexthop_id}"]
        _expect(mangle, {"mangle": {"key": {"meta": {"key": "mark"}}, "value": nexthop_id}})
        counted = counter["counter"]
        self.counted[nexthop_id] = Counted(counted["packets"], counted["bytes"])
        return 0

    def _rounds(self) -> dict[int, SprayRound]:
        gaps = {}
        for name in self._maps:
            if name.startswith(_FLOWS):
                gap, group_id = name[len(_FLOWS) :].split("_")
                gaps[int(group_id)] = int(gap)
        return {i: self._round(i, gaps.get(i, 0)) for i in self._numbered(_GROUP)}

    def _round(self, group_id: int, gap: int) -> SprayRound:
        rules = self._rules[f"{_GROUP}{group_id}"]
        if not gap:
            ((chosen,),) = rules
            chosen = chosen["vmap"]
            order = tuple(int(_target(to)[len(_HOP) :]) for _, to in chosen["data"]["set"])
        else:
            chosen = rules[2][1]["mangle"]["value"]["map"]
            order = tuple(hop for _, hop in chosen["data"]["set"])
            if len(rules) != len([*_flowlet_rules("", "")]):
                raise ValueError(rules)
        _expect(chosen["key"], {"numgen": {"mode": "inc", "mod": len(order), "offset": 0}})
        _expect([at for at, _ in chosen["data"]["set"]], list(range(len(order))))
        return SprayRound(order, gap)

    def _blocks(self) -> dict[Block, int]:
        found = {}
        for family, name in _BLOCKS.items():
            for key, to in self._maps[name].get("elem", ()):
                found[_block(family, key)] = int(_target(to)[len(_GROUP) :])
        return found


_DADDR = (("ip", "ipv4"), ("ip6", "ipv6"))


def _expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise ValueError(found)


def _daddr(protocol: str) -> Json:
    return {"payload": {"protocol": protocol, "field": "daddr"}}


def _vmap(key: Json, data: str) -> Json:
    return {"vmap": {"key": key, "data": data}}


def _comparison(operator: str, left: Json, right: object) -> Json:
    return {"match": {"op": operator, "left": left, "right": right}}


def _selecting_listed(match: SprayMatch) -> Iterator[list[Json]]:
    """Yield the rules of ``_selecting`` as nft lists them."""
    verdict: Json = {"goto": {"target": "spray"}}
    if match == SprayMatch():
        yield [verdict]
    fields = [(("ip", "dscp"), match.dscp), (("ip6", "dscp"), match.dscp)]
    for protocol, ports in zip(_PORT, (match.udp_ports, match.tcp_ports), strict=True):
        fields += [((protocol, "dport"), ports), ((protocol, "sport"), ports)]
    for (protocol, field), numbers in fields:
        if numbers:
            right = {"set": list(numbers)} if len(numbers) > 1 else numbers[0]
            left = {"payload": {"protocol": protocol, "field": field}}
            yield [_comparison("==", left, right), verdict]


def _target(verdict: Mapping[str, Mapping[str, str]]) -> str:
    return verdict["goto"]["target"]


def _block(family: int, key: Any) -> Block:  # noqa: ANN401 - JSON
    if isinstance(key, str):
        first = last = int(ipaddress.ip_address(key))
    elif "range" in key:
        first, last = (int(ipaddress.ip_address(end)) for end in key["range"])
    else:
        network = ipaddress.ip_network((key["prefix"]["addr"], key["prefix"]["len"]))
        first, last = int(network.network_address), int(network.broadcast_address)
    return Block(family, first, last)
