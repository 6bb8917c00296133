"""The IS-IS database as a file: what ``show lsdb --json`` prints where IS-IS runs.

LSPs are bytes as they arrived, with the lifetime of this moment patched in.
"""

from __future__ import annotations

from typing import Any

from fared.core.ids import format_address, format_system_id
from fared.isis.pdu.header import with_lifetime
from fared.isis.snapshot import CircuitView, IsisSnapshot


def isis_lsdb_document(snapshot: IsisSnapshot) -> dict[str, Any]:
    """Write a whole engine's database, purged LSPs included."""
    return {
        "format": "fared-lsdb/1",
        "proto": "isis",
        "system_id": format_system_id(snapshot.system_id),
        "levels": [database.level for database in snapshot.databases],
        "interfaces": [_interface(circuit) for circuit in snapshot.circuits],
        "lsps": [
            {
                "level": database.level,
                "hex": with_lifetime(view.raw, view.remaining_lifetime).hex(),
            }
            for database in snapshot.databases
            for view in database.lsps
        ],
    }


def _interface(circuit: CircuitView) -> dict[str, Any]:
    return {
        "name": circuit.name,
        "type": circuit.kind,
        "addresses": [
            f"{format_address(family, address)}/{length}"
            for family, address, length in circuit.addresses
        ],
        "adjacencies": [
            {
                "neighbor": format_system_id(adjacency.system_id),
                "level": int(level),
                "ipv4": [format_address(4, address) for address in adjacency.ipv4],
                "ipv6": [format_address(6, address) for address in adjacency.ipv6],
            }
            for adjacency in circuit.adjacencies
            if adjacency.state == "Up"
            for level in adjacency.levels.levels
        ],
    }
