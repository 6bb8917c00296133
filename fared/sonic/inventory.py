"""The names of ports, LAGs, their members, and the interfaces of VRFs: from keys of CONFIG_DB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from fared.sonic.values import Values

_T = TypeVar("_T")
MOST = 16_384
"""More ports, members or interfaces than this are left out, and counted."""
PATTERNS = ("PORT*", "*INTERFACE*")
"""Of the keys in which all of these are."""
_PORT, _LAG, _MEMBER = "PORT", "PORTCHANNEL", "PORTCHANNEL_MEMBER"
_INTERFACES = frozenset(
    f"{kind}INTERFACE" for kind in ("", "PORTCHANNEL_", "VLAN_", "LOOPBACK_", "VLAN_SUB_")
)


class Inventory(msgspec.Struct, frozen=True):
    """``lags``: the members of each; ``interfaces``: name and table of each that has addresses."""

    ports: tuple[str, ...] = ()
    lags: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    interfaces: tuple[tuple[str, str], ...] = ()

    def portions(self, size: int) -> Iterator[Inventory]:
        """Yield it in portions of about so many rows: ports, then LAGs, then interfaces."""
        for ports in _slices(self.ports, size):
            yield Inventory(ports=ports)
        some: dict[str, tuple[str, ...]] = {}
        rows = 0
        for lag, members in self.lags.items():
            some[lag] = members
            rows += 1 + len(members)
            if rows >= size:
                yield Inventory(lags=some)
                some, rows = {}, 0
        if some:
            yield Inventory(lags=some)
        for interfaces in _slices(self.interfaces, size):
            yield Inventory(interfaces=interfaces)


def _slices(items: tuple[_T, ...], size: int) -> Iterator[tuple[_T, ...]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


class InventoryReader:
    """Takes keys of CONFIG_DB in portions; those of other tables are passed over."""

    def __init__(self, separator: str, values: Values) -> None:
        self._separator, self._values = separator.encode(), values
        self._seen: set[bytes] = set()
        self._ports: set[str] = set()
        self._lags: dict[str, set[str]] = {}
        self._interfaces: set[tuple[str, str]] = set()

    def take(self, keys: Iterable[bytes]) -> None:
        """Take some keys; one may come twice."""
        for raw in keys:
            table, _, rest = raw.partition(self._separator)
            kind = table.decode("ascii", "replace")
            if kind not in (_PORT, _LAG, _MEMBER) and kind not in _INTERFACES:
                continue
            parts = rest.split(self._separator)
            if len(parts) != (2 if kind == _MEMBER else 1) or raw in self._seen:
                continue  # INTERFACE|Ethernet0|10.0.0.0/31 is an address of it
            names = [self._values.name(part) for part in parts]
            if not all(names):
                continue
            if len(self._seen) >= MOST:
                self._values.wrong["too-many"] += 1
                continue
            self._seen.add(raw)
            self._add(kind, *names)

    def inventory(self) -> Inventory:
        """Return what the keys so far name."""
        lags = {lag: tuple(sorted(found)) for lag, found in sorted(self._lags.items())}
        return Inventory(tuple(sorted(self._ports)), lags, tuple(sorted(self._interfaces)))

    def _add(self, kind: str, name: str, *members: str) -> None:
        if kind == _PORT:
            self._ports.add(name)
        elif kind in (_LAG, _MEMBER):
            self._lags.setdefault(name, set()).update(members)
        else:
            self._interfaces.add((name, kind))
