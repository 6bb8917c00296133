"""BIER in the language of nftables: chains of one table of the family netdev.

::

    in_IFINDEX   ingress hook of a port: BIER packets go to ``packets``
    packets      checks the header; the BIFT-id selects the set
    set_SET      the entropy selects the table
    table_N      for each neighbor: mark and duplicate if the packet has a bit of the F-BM;
                 then the bit of this router, else the end
    dup_MARK     the same for a mask of more than 64 bits
    local_N      clears all other bits; sockets of type 0xab37 receive the packet
    out_IFINDEX  egress hook: the mark selects the copy
    copy_MARK    TTL, bits, MAC addresses

Copies go to the group address of all stations: a port has one BFR neighbor, whose address need not
be resolved first, so that nothing is lost when a way is new. Frames that a process sends by itself
out of a port have no mark and pass unchanged; what it sends to the loopback is forwarded.

There are no verdict maps: a packet that is between the rules while a transaction ends still sees
the former rules, but the kernel looks up elements of sets as of the new generation, in which those
of replaced rules are gone; a map of entropies lost one packet of a million rewrites so. Rules that
compare one value each have no elements.

``nft`` lists masks of payload assignments as their complement (1.0.6), so that the listing is
compared with one that was made after our own change, not read back.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from fared.core.bier import bift_id
from fared.kernel.leftovers import BIER_TABLE
from fared.kernel.nft import CounterValue
from fared.paths.bier.birt import BfrNeighbor
from fared.paths.bier.header import ETHERTYPE, FIXED_SIZE
from fared.paths.fib.bier import BierFib

FAMILY, TABLE = "netdev", BIER_TABLE
COPY = "copy_"
RECEIVED, DELIVERED, EXPIRED, UNKNOWN, MALFORMED = COUNTERS = (
    "received",
    "delivered",
    "expired",
    "unknown",
    "malformed",
)
"""Packets that arrived, were delivered here, had no TTL left, an unknown BIFT-id, a bad header."""
_NEIGHBOR, _DUPLICATE = "n_", "dup_"
_PACKETS, _TTL = "packets", "ttl"
_PIECE = 64
"""Bits that one expression compares; nft refuses 256."""
_PIECES_A_RULE = 8
_BIER = f"meta protocol {ETHERTYPE:#x}"
_ENTROPY = {16: "@nh,60,4"}
"""The low bits of the entropy that count, by number of tables."""

Json = dict[str, Any]


class Chain(NamedTuple):
    """A chain: its hook, empty without one, and its rules."""

    hook: str
    rules: tuple[str, ...]


class Listed(NamedTuple):
    """A listing: names of chains and counters with their values, and a digest of all rules."""

    chains: frozenset[str]
    counters: Mapping[str, CounterValue]
    digest: str

    @property
    def highest_mark(self) -> int:
        """The highest mark that a chain is for."""
        numbers = (name.removeprefix(COPY) for name in self.chains if name.startswith(COPY))
        return max((int(number) for number in numbers if number.isdecimal()), default=0)


NOTHING = Listed(frozenset(), MappingProxyType({}), "")
"""No table."""


def counter_of(neighbor: BfrNeighbor) -> str:
    """Return the name of the counter of a neighbor's copies."""
    return f"{_NEIGHBOR}{neighbor.ifindex}_{neighbor.address}"


def chains_of(fib: BierFib) -> dict[str, Chain]:
    """Return all chains of a state by name."""
    found: dict[str, Chain] = {}
    ports = {port.ifindex: port for port in fib.ports}
    leaving: dict[int, list[int]] = defaultdict(list)
    for mark, copy in fib.copies.items():
        port = ports.get(copy.neighbor.ifindex)
        if port is not None:
            leaving[port.ifindex].append(mark)
            name = counter_of(copy.neighbor)
            found[f"{COPY}{mark}"] = Chain("", (*_copy(copy.mask, fib.length, port.mac, name),))
    for port in fib.ports:
        found[f"in_{port.ifindex}"] = Chain(_hook("ingress", port.name), (f"{_BIER} goto packets",))
        if marks := leaving.get(port.ifindex):
            copies = tuple(f"{_BIER} meta mark {mark} goto {COPY}{mark}" for mark in marks)
            found[f"out_{port.ifindex}"] = Chain(_hook("egress", port.name), copies)
            for mark in marks:
                rules = [*_duplicate(mark, fib.copies[mark].mask, fib.length, port.name)]
                if len(rules) > 1:  # once, whatever pieces have bits
                    once = tuple(f"{rule} return" for rule in rules)
                    found[f"{_DUPLICATE}{mark}"] = Chain("", once)
    for number, table in enumerate(fib.tables):
        if table.local:
            found[f"local_{number}"] = Chain("", (*_local(table.local, fib.length),))
        found[f"table_{number}"] = Chain("", (*_table(fib, number, leaving),))
    for set_id, tables in fib.sets.items():
        found[f"set_{set_id}"] = Chain("", (*_select(tables),))
    found[_PACKETS] = Chain("", (*_packets(fib),))
    return found


def _hook(kind: str, device: str) -> str:
    return f'{{ type filter hook {kind} device "{device}" priority 0; policy accept; }}'


def _packets(fib: BierFib) -> Iterator[str]:
    yield f"counter name {RECEIVED}"
    # RFC 8296 §2.1.2: nibble 0 (without MPLS), version 0, a length that is known
    first = bift_id(fib.length, 0, 0) >> 16
    yield f"@nh,32,12 != {first:#x} counter name {MALFORMED} drop"
    for set_id in fib.sets:
        yield f"@nh,0,20 {bift_id(fib.length, fib.sub_domain, set_id):#x} goto set_{set_id}"
    yield f"counter name {UNKNOWN} drop"


def _select(tables: tuple[int, ...]) -> Iterator[str]:
    """Yield a rule for each value of the entropy whose table is not the last one."""
    for at, table in enumerate(tables):
        if table != tables[-1]:
            yield f"{_ENTROPY[len(tables)]} {at:#x} goto table_{table}"
    yield f"goto table_{tables[-1]}"


def _table(fib: BierFib, number: int, leaving: Mapping[int, list[int]]) -> Iterator[str]:
    names = {port.ifindex: port.name for port in fib.ports}
    rules = fib.tables[number]
    for mark in rules.marks:
        neighbor, mask = fib.copies[mark]
        if neighbor.ifindex not in leaving:
            continue
        found = [*_duplicate(mark, mask, fib.length, names[neighbor.ifindex])]
        yield found[0] if len(found) == 1 else f"jump {_DUPLICATE}{mark}"
    for offset, bits in _pieces(rules.local, fib.length):
        yield f"@nh,{offset},{_PIECE} & {bits:#x} != 0 goto local_{number}"
    yield "drop"


def _duplicate(mark: int, mask: int, length: int, device: str) -> Iterator[str]:
    """Yield a rule for each piece of the mask that duplicates a packet with any of its bits."""
    for offset, bits in _pieces(mask, length):
        yield f'@nh,{offset},{_PIECE} & {bits:#x} != 0 meta mark set {mark} dup to "{device}"'


def _local(local: int, length: int) -> Iterator[str]:
    yield from _clear(local, length)
    yield f"meta mark set 0 counter name {DELIVERED} accept"


def _copy(mask: int, length: int, mac: int, counter: str) -> Iterator[str]:
    # RFC 8296 §2.1.1.2: a packet whose TTL would become 0 is not forwarded
    yield f"@nh,24,8 < 2 counter name {EXPIRED} drop"
    yield from _clear(mask, length)
    addresses = f"@ll,0,48 set 0xffffffffffff @ll,48,48 set {mac:#x}"
    ttl = f"@nh,24,8 set @nh,24,8 map @{_TTL}"
    yield f"{ttl} {addresses} meta mark set 0 counter name {counter} accept"
    yield "drop"


def _pieces(bits: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield offset in the header and value of each piece with bits."""
    for offset, piece in _all_pieces(bits, length):
        if piece:
            yield offset, piece


def _all_pieces(bits: int, length: int) -> Iterator[tuple[int, int]]:
    for at in range(0, length, _PIECE):
        yield 8 * FIXED_SIZE + at, bits >> length - at - _PIECE & (1 << _PIECE) - 1


def _clear(mask: int, length: int) -> Iterator[str]:
    """Yield rules that clear all bits but those of the mask."""
    parts = [
        f"@nh,{offset},{_PIECE} set @nh,{offset},{_PIECE} & {bits:#x}"
        if bits
        else f"@nh,{offset},{_PIECE} set 0"
        for offset, bits in _all_pieces(mask, length)
    ]
    for at in range(0, len(parts), _PIECES_A_RULE):
        yield " ".join(parts[at : at + _PIECES_A_RULE])


# Changes


def transaction(wanted: BierFib, before: Mapping[str, Chain | None], listed: Listed) -> str:
    """Return the commands that lead to a state.

    ``before``: chains of the kernel, None where the rules are not known. Chains that stay keep
    their hooks, so that no packet passes in between. Counters stay while their neighbor does.
    """
    after = chains_of(wanted)
    add = f"add table {FAMILY} {TABLE}"
    counters = {*COUNTERS, *(counter_of(copy.neighbor) for copy in wanted.copies.values())}
    lines = [add]
    lines += (f"add counter {FAMILY} {TABLE} {n}" for n in sorted(counters - {*listed.counters}))
    if not before:
        lines += _ttl_map()
    changed = {name: chain for name, chain in after.items() if before.get(name) != chain}
    gone = [name for name in listed.chains if name not in after]
    lines += (f"add chain {FAMILY} {TABLE} {name} {chain.hook}" for name, chain in changed.items())
    lines += (f"flush chain {FAMILY} {TABLE} {name}" for name in (*changed, *gone))
    for name, chain in changed.items():
        lines += (f"add rule {FAMILY} {TABLE} {name} {rule}" for rule in chain.rules)
    lines += (f"delete chain {FAMILY} {TABLE} {name}" for name in sorted(gone))
    unused = sorted({*listed.counters} - counters)
    lines += (f"delete counter {FAMILY} {TABLE} {name}" for name in unused)
    return "".join(f"{line}\n" for line in lines)


def removal() -> str:
    """Return the commands that remove everything."""
    return f"add table {FAMILY} {TABLE}\ndelete table {FAMILY} {TABLE}\n"


def _ttl_map() -> Iterator[str]:
    """Yield the map from TTL to the next one: nftables does not subtract."""
    kind = "typeof @nh,24,8 : @nh,24,8;"
    elements = ", ".join(f"{ttl} : {ttl - 1}" for ttl in range(2, 256))
    yield f"add map {FAMILY} {TABLE} {_TTL} {{ {kind} }}"
    yield f"flush map {FAMILY} {TABLE} {_TTL}"
    yield f"add element {FAMILY} {TABLE} {_TTL} {{ {elements} }}"


# Listings


def read_listing(listed: Iterable[Json]) -> Listed:
    """Return what a listing of the table has."""
    chains = set()
    counters: dict[str, CounterValue] = {}
    rules: list[str] = []
    for entry in listed:
        for kind, content in entry.items():
            if kind == "counter":
                counters[content["name"]] = CounterValue(content["packets"], content["bytes"])
                continue
            if kind == "chain":
                chains.add(content["name"])
            if kind != "metainfo":
                known = {key: value for key, value in content.items() if key != "handle"}
                rules.append(json.dumps([kind, known], sort_keys=True))
    digest = hashlib.blake2b("\n".join(rules).encode()).hexdigest()
    return Listed(frozenset(chains), counters, digest)
