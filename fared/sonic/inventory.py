"""The names of ports, LAGs, their members, and the interfaces of VRFs: from keys of CONFIG_DB."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fared.sonic.values import Values

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


def read_inventory(keys: Iterable[bytes], separator: str, values: Values) -> Inventory:
    """Return what keys of CONFIG_DB name; of other tables they are passed over."""
    ports: set[str] = set()
    lags: dict[str, set[str]] = {}
    interfaces: set[tuple[str, str]] = set()
    taken = 0
    for raw in keys:
        table, _, rest = raw.partition(separator.encode())
        kind = table.decode("ascii", "replace")
        if kind not in (_PORT, _LAG, _MEMBER) and kind not in _INTERFACES:
            continue
        names = [values.name(part) for part in rest.split(separator.encode())]
        if len(names) != (2 if kind == _MEMBER else 1):
            continue  # INTERFACE|Ethernet0|10.0.0.0/31 is an address of it
        if not all(names):
            continue
        if taken >= MOST:
            values.wrong["too-many"] += 1
            continue
        taken += 1
        if kind == _PORT:
            ports.add(names[0])
        elif kind == _LAG:
            lags.setdefault(names[0], set())
        elif kind == _MEMBER:
            lags.setdefault(names[0], set()).add(names[1])
        else:
            interfaces.add((names[0], kind))
    members = {lag: tuple(sorted(found)) for lag, found in sorted(lags.items())}
    return Inventory(tuple(sorted(ports)), members, tuple(sorted(interfaces)))
