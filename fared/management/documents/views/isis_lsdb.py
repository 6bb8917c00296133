"""The IS-IS database as a file: ``show lsdb --json`` prints it and ``fared-cli spf`` reads it.

LSPs are bytes as they arrived, with the present remaining lifetime patched in, which no
checksum and no digest covers; clear text passwords are replaced.
"""

from __future__ import annotations

from functools import partial

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, format_address, format_system_id
from fared.core.links import InterfaceAddress
from fared.management.documents.context import finite
from fared.management.documents.lsdb import (
    IsisLsdb,
    IsisLsdbAdjacency,
    IsisLsdbInterface,
    IsisLsdbLsp,
)
from fared.management.documents.rows import Rows
from fared.protocols.isis.addresses import ipv4_gateway, link_local
from fared.protocols.isis.adjacency.fsm import all_adjacencies
from fared.protocols.isis.circuit import Adjacency, Circuit
from fared.protocols.isis.engine import IsisEngine
from fared.protocols.isis.ids import Level, LevelSet
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.auth import without_password
from fared.protocols.isis.pdu.codec import with_lifetime


def isis_lsdb_document(engine: IsisEngine, now: float) -> IsisLsdb:
    """Return the whole database of an engine, ``fared-lsdb/1``; headers of purged LSPs included."""
    instance = engine.instance
    levels = instance.settings.levels
    entries = [
        (level, entry)
        for level, lsdb in sorted(instance.databases.items())
        for entry in lsdb.ordered()
    ]
    return IsisLsdb(
        proto="isis",
        system_id=format_system_id(instance.system_id),
        levels=[int(level) for level in levels.levels],
        interfaces=[_interface(circuit, levels) for circuit in instance.ordered_circuits()],
        lsps=Rows(entries, partial(_lsp, now)),
    )


def _lsp(now: float, of: tuple[Level, StoredLsp]) -> IsisLsdbLsp:
    level, entry = of
    shown = with_lifetime(without_password(entry.raw), entry.remaining_lifetime(now))
    return IsisLsdbLsp(level=int(level), hex=shown.hex())


def _interface(circuit: Circuit, levels: LevelSet) -> IsisLsdbInterface:
    return IsisLsdbInterface.of(
        circuit,
        circuit.settings,
        type=circuit.kind.value,
        addresses=[address_text(address) for address in circuit.link.addresses],
        bandwidth=finite(circuit.bandwidth.capacity),
        adjacencies=[
            _adjacency(circuit.link.ipv4(), adjacency, level)
            for level in levels.levels
            for adjacency in all_adjacencies(circuit)
            if adjacency.up and adjacency.levels & level
        ],
    )


def address_text(address: InterfaceAddress) -> str:
    """Format an address with its prefix length."""
    return f"{format_address(address.family, address.address)}/{address.prefix_length}"


def _adjacency(
    own: tuple[InterfaceAddress, ...], adjacency: Adjacency, level: Level
) -> IsisLsdbAdjacency:
    """Return one neighbor; of several addresses the one that packets are sent to."""
    ipv4 = ipv4_gateway(own, adjacency.ipv4)[0] if adjacency.ipv4 else None
    ipv6 = next((address for address in adjacency.ipv6 if link_local(address)), None)
    return IsisLsdbAdjacency(
        neighbor=format_system_id(adjacency.system_id),
        level=int(level),
        ipv4=None if ipv4 is None else format_address(FAMILY_IPV4, ipv4),
        ipv6=None if ipv6 is None else format_address(FAMILY_IPV6, ipv6),
    )
