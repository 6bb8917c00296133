"""Reads the table of sprayed packets from ``nft --json list table``.

Everything that ``spray_table`` would not have written is damage, which the planner repairs.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fared.kernel.nft import CounterValue
from fared.kernel.spray_table import (
    BASE,
    BLOCKS,
    FLOWS,
    GROUP,
    HOP,
    MARKED,
    MARKS,
    PORT,
    PRIORITY,
    SEED,
    SPRAY,
    flows_name,
)
from fared.paths.fib.settings import SprayMatch
from fared.paths.fib.spray import Block, SprayRound, SprayState

Json = dict[str, Any]
_DADDR = (("ip", "ipv4"), ("ip6", "ipv6"))
_MARK: Json = {"meta": {"key": "mark"}}


def parse(listed: Iterable[Json]) -> tuple[SprayState, dict[int, CounterValue]]:
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
        self.counted: dict[int, CounterValue] = {}
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
        marks = {i: self._mark(i) for i in self._numbered(HOP)}
        state = SprayState(self._match(), marks, self._rounds(), self._blocks())
        known = {BASE, MARKED, SPRAY, *(f"{HOP}{i}" for i in marks)}
        known |= {f"{GROUP}{i}" for i in state.rounds}
        flows = {flows_name(i, each.gap) for i, each in state.rounds.items() if each.gap}
        maps = {MARKS, *BLOCKS.values(), *flows}
        elements = {key: _target(to) for key, to in self._maps[MARKS].get("elem", ())}
        state.damaged = (
            known != {*self._chains}
            or maps != {*self._maps}
            or elements != {i: f"{HOP}{i}" for i in marks}
            or self._rules[MARKED] != [[_vmap(_MARK, f"@{MARKS}")]]
            or self._rules[SPRAY] != [[_vmap(_daddr(p), f"@{m}")] for p, m in _DADDR]
        )
        return state

    def _numbered(self, start: str) -> list[int]:
        return [int(name[len(start) :]) for name in self._chains if name.startswith(start)]

    def _match(self) -> SprayMatch:
        base = self._chains[BASE]
        if (base["hook"], base["prio"], base["policy"]) != ("prerouting", PRIORITY, "accept"):
            raise ValueError(base)
        first, *rest = self._rules[BASE]
        numbers: dict[tuple[str, str], tuple[int, ...]] = {}
        for compared, verdict in (r for r in rest if len(r) == 2):
            field = compared["match"]["left"]["payload"]
            right = compared["match"]["right"]
            values = right["set"] if isinstance(right, dict) else [right]
            numbers[field["protocol"], field["field"]] = tuple(values)
            _expect(verdict, {"goto": {"target": SPRAY}})
        _expect(first, [_comparison("!=", _MARK, 0), {"return": None}])
        found = SprayMatch(
            numbers.get(("ip", "dscp"), ()),
            numbers.get(("udp", "dport"), ()),
            numbers.get(("tcp", "dport"), ()),
        )
        _expect(rest, list(_selecting_listed(found)))
        return found

    def _mark(self, nexthop_id: int) -> int:
        """Count its packets; 0, since the family shows in its routes only."""
        ((mangle, counter),) = self._rules[f"{HOP}{nexthop_id}"]
        _expect(mangle, _set_mark(nexthop_id))
        counted = counter["counter"]
        self.counted[nexthop_id] = CounterValue(counted["packets"], counted["bytes"])
        return 0

    def _rounds(self) -> dict[int, SprayRound]:
        gaps = {}
        for name in self._maps:
            if name.startswith(FLOWS):
                gap, group_id = name[len(FLOWS) :].split("_")
                gaps[int(group_id)] = int(gap)
        return {i: self._round(i, gaps.get(i, 0)) for i in self._numbered(GROUP)}

    def _round(self, group_id: int, gap: int) -> SprayRound:
        rules = self._rules[f"{GROUP}{group_id}"]
        if not gap:
            return _packet_round(rules)
        chosen = rules[2][1]["mangle"]["value"]["map"]
        order = tuple(hop for _, hop in chosen["data"]["set"])
        _expect_flowlets(rules, flows_name(group_id, gap), chosen)
        _expect(chosen["key"], _number(len(order), 0))
        _expect([at for at, _ in chosen["data"]["set"]], list(range(len(order))))
        return SprayRound(order, gap)

    def _blocks(self) -> dict[Block, int]:
        found = {}
        for family, name in BLOCKS.items():
            for key, to in self._maps[name].get("elem", ()):
                found[_block(family, key)] = int(_target(to)[len(GROUP) :])
        return found


def _packet_round(rules: list[list[Json]]) -> SprayRound:
    """Read the rules of ``_packet_rules``."""
    *smaller, others, (chosen,) = rules
    found = chosen["vmap"]["data"]["set"]
    order = tuple(int(_target(to)[len(HOP) :]) for _, to in found)
    _expect(chosen, _vmap(_MARK, {"set": found}))
    _expect([at for at, _ in found], list(range(1, len(order) + 1)))
    number = _set_mark(_number(len(order), 1))
    _expect(others, [_comparison("==", _MARK, 0), number])
    if not smaller:
        return SprayRound(order)
    ((compared, same),) = smaller
    small: int = compared["match"]["right"]
    _expect(compared, _comparison("<", {"meta": {"key": "length"}}, small))
    _expect(same, number)
    return SprayRound(order, small=small)


def _number(count: int, first: int) -> Json:
    return {"numgen": {"mode": "inc", "mod": count, "offset": first}}


def _expect_flowlets(rules: list[list[Any]], name: str, chosen: Json) -> None:
    """Compare the rules of ``flowlet_rules``, of which nft 1.0.6 prints updates of maps as text."""
    lookups, (first, *updates, last) = rules[: len(_DADDR)], rules[len(_DADDR) :]
    for (lookup,), (protocol, _) in zip(lookups, _DADDR, strict=True):
        found = lookup["mangle"]["value"]["map"]["key"]["jhash"]
        flow = {"jhash": {"mod": found["mod"], "seed": SEED, "expr": {"concat": _flow(protocol)}}}
        _expect(lookup, _set_mark({"map": {"key": flow, "data": f"@{name}"}}))
    _expect(first, [_comparison("==", _MARK, 0), _set_mark({"map": chosen})])
    for (update, verdict), (protocol, _) in zip(updates, _DADDR, strict=True):
        _expect(verdict, {"goto": {"target": MARKED}})
        if isinstance(update, str):
            _expect(update.startswith(f"update @{name} {{ jhash {protocol} saddr "), wanted=True)
    _expect(last, [_set_mark(0)])


def _flow(protocol: str) -> list[Json]:
    """Return the fields that make a flow, as nft lists them."""
    fields: list[Json] = [
        {"payload": {"protocol": header, "field": field}}
        for header, field in (
            (protocol, "saddr"),
            (protocol, "daddr"),
            ("th", "sport"),
            ("th", "dport"),
        )
    ]
    return [*fields[:2], {"meta": {"key": "l4proto"}}, *fields[2:]]


def _set_mark(value: object) -> Json:
    return {"mangle": {"key": _MARK, "value": value}}


def _expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise ValueError(found)


def _daddr(protocol: str) -> Json:
    return {"payload": {"protocol": protocol, "field": "daddr"}}


def _vmap(key: Json, data: object) -> Json:
    return {"vmap": {"key": key, "data": data}}


def _comparison(operator: str, left: Json, right: object) -> Json:
    return {"match": {"op": operator, "left": left, "right": right}}


def _selecting_listed(match: SprayMatch) -> Iterator[list[Json]]:
    """Yield the rules of ``_selecting`` as nft lists them."""
    verdict: Json = {"goto": {"target": SPRAY}}
    if match == SprayMatch():
        yield [verdict]
    fields = [(("ip", "dscp"), match.dscp), (("ip6", "dscp"), match.dscp)]
    for protocol, ports in zip(PORT, (match.udp_ports, match.tcp_ports), strict=True):
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
