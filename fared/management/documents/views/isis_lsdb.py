"""The IS-IS database as a file: ``show lsdb --json`` prints it and ``fared-cli spf`` reads it.

LSPs are bytes as they arrived, with the present remaining lifetime patched in, which no
checksum and no digest covers; clear text passwords are replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, format_address, format_system_id
from fared.core.links import InterfaceAddress
from fared.management.documents.context import finite
from fared.management.documents.rows import Rows
from fared.protocols.isis.addresses import ipv4_gateway, link_local
from fared.protocols.isis.circuit import AdjacencyState
from fared.protocols.isis.ids import Level
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.auth import without_password
from fared.protocols.isis.pdu.codec import with_lifetime
from fared.protocols.isis.snapshot import AdjacencyView, CircuitView, DatabaseView, IsisSnapshot

if TYPE_CHECKING:
    from fared.management.documents.schema import isis_lsdb as schema


def isis_lsdb_document(snapshot: IsisSnapshot) -> schema.IsisLsdb:
    """Return the whole database of an engine, ``fared-lsdb/1``; headers of purged LSPs included."""
    return {
        "format": "fared-lsdb/1",
        "proto": "isis",
        "system_id": format_system_id(snapshot.system_id),
        "levels": [int(level) for level in snapshot.levels.levels],
        "interfaces": [_interface(circuit, snapshot) for circuit in snapshot.circuits],
        "lsps": Rows([(d, entry) for d in snapshot.databases for entry in d.entries], _lsp),
    }


def _lsp(of: tuple[DatabaseView, StoredLsp]) -> schema.IsisLsdbLsp:
    database, entry = of
    lifetime = entry.remaining_lifetime(database.now)
    shown = with_lifetime(without_password(entry.raw), lifetime)
    return {"level": database.level, "hex": shown.hex()}


def _interface(circuit: CircuitView, snapshot: IsisSnapshot) -> schema.IsisLsdbInterface:
    return {
        "name": circuit.name,
        "type": circuit.kind,
        "ifindex": circuit.ifindex,
        "addresses": [
            f"{format_address(family, address)}/{length}"
            for family, address, length in circuit.addresses
        ],
        "metric": circuit.metric,
        "bandwidth": finite(circuit.capacity),
        "adjacencies": [
            _adjacency(circuit, adjacency, level)
            for level in snapshot.levels.levels
            for adjacency in circuit.adjacencies
            if adjacency.state == AdjacencyState.UP.value and adjacency.levels & level
        ],
    }


def _adjacency(
    circuit: CircuitView, adjacency: AdjacencyView, level: Level
) -> schema.IsisLsdbAdjacency:
    """Return one neighbor; of several addresses the one that packets are sent to."""
    own = tuple(
        InterfaceAddress(family, address, length)
        for family, address, length in circuit.addresses
        if family == FAMILY_IPV4
    )
    ipv4 = ipv4_gateway(own, adjacency.ipv4)[0] if adjacency.ipv4 else None
    ipv6 = next((address for address in adjacency.ipv6 if link_local(address)), None)
    return {
        "neighbor": format_system_id(adjacency.system_id),
        "level": int(level),
        "ipv4": None if ipv4 is None else format_address(FAMILY_IPV4, ipv4),
        "ipv6": None if ipv6 is None else format_address(FAMILY_IPV6, ipv6),
    }
