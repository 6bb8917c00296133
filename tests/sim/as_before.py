"""Whether a fabric is as it was: routes, weights, adjacencies and databases of all routers."""

from __future__ import annotations

from typing import Any

import msgspec

from fared.extensions.sim.fabric import LANS, Fabric
from fared.extensions.sim.network import Node
from fared.protocols.isis.adjacency.fsm import all_adjacencies
from fared.protocols.ospf.lsdb import Scope
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, MAX_AGE, Lsa, LsType
from fared.protocols.ospf.packet.opaque import OpaqueType

Routes = dict[str, dict[Any, list[tuple[Any, ...]]]]
Database = dict[tuple[Any, ...], tuple[int, int]]


def routes(fabric: Fabric) -> Routes:
    """What each kernel does with each prefix: next hops and weights, without their ids."""
    found: Routes = {}
    for name, node in fabric.network.nodes.items():
        state = node.kernel.state
        found[name] = {}
        for prefix, target in state.routes.items():
            members = state.groups.get(target) or ((target, 1),)
            ways = sorted((str(state.nexthops[member[0]]), member[1]) for member in members)
            found[name][prefix] = ways
    return found


def database(fabric: Fabric, node: Node) -> Database:
    """Number and checksum of all live LSAs and LSPs of the routers of each area, by key.

    What is forged in the name of others nobody flushes: it ages out.
    """
    found: Database = {}
    for proto, instance in node.running.instances.items():
        live: Any = instance.engine.instance
        for part in live.databases.values() if proto == "isis" else live.databases():
            ids = members(fabric, proto, part)
            if proto == "isis":
                for entry in part.ordered():
                    if not entry.purged and entry.lsp_id >> 16 in ids:
                        key = (proto, part.level, entry.lsp_id)
                        found[key] = (entry.sequence_number, entry.checksum)
                continue
            for entry in part if part.scope is not Scope.LINK else ():
                head = entry.lsa.header
                if entry.age(fabric.network.now) < MAX_AGE and head.advertising_router in ids:
                    key = (proto, part.area, *_identity(entry.lsa))
                    found[key] = (head.ls_sequence_number, head.ls_checksum)
    return found


def _identity(lsa: Lsa) -> tuple[Any, ...]:
    """The key of an LSA, but that what a router is free to choose does not matter."""
    key = lsa.header.key
    if key.ls_type == LsType.NETWORK and key.link_state_id >> 16 == LANS >> 16:
        return key.ls_type, key.link_state_id >> 8, 0  # whoever is designated
    if key.ls_type == LsType.OPAQUE_AREA and key.link_state_id >> 24 == OpaqueType.EXTENDED_PREFIX:
        return key.ls_type, lsa.raw[LSA_HEADER_SIZE:], key.advertising_router
    return key.ls_type, key.link_state_id, key.advertising_router


def members(fabric: Fabric, proto: str, part: Any) -> set[int]:
    """The routers of an area or level."""
    ids = fabric.router_ids
    if proto == "ospf" and part.area is None:
        return set(ids.values())
    return {
        ids[node.name]
        for node in fabric.network.nodes.values()
        if any(
            part.level & port.settings["isis"].levels
            if proto == "isis"
            else part.area == port.settings["ospf"].area
            for port in node.ports.values()
        )
    }


def adjacencies(node: Node) -> list[tuple[Any, ...]]:
    """The adjacencies of a router and their states."""
    found: list[tuple[Any, ...]] = []
    for proto, instance in node.running.instances.items():
        live: Any = instance.engine.instance
        if proto == "isis":
            for circuit in live.ordered_circuits():
                known = all_adjacencies(circuit)
                found += [(circuit.ifindex, a.system_id, a.levels, a.state.value) for a in known]
        else:
            for neighbor in live.neighbors():
                at = neighbor.interface.ifindex
                found.append((at, neighbor.router_id, neighbor.state.label))
    return sorted(found, key=str)


class Seen(msgspec.Struct):
    """The state of a whole fabric."""

    routes: Routes
    databases: dict[str, Database]
    adjacencies: dict[str, list[tuple[Any, ...]]]
    owners: dict[int, str]


def seen(fabric: Fabric) -> Seen:
    nodes = fabric.network.nodes
    return Seen(
        routes(fabric),
        {name: database(fabric, node) for name, node in nodes.items()},
        {name: adjacencies(node) for name, node in nodes.items()},
        {value: name for name, value in fabric.router_ids.items()},
    )


def may_stay(name: str, key: tuple[Any, ...], now: Seen) -> bool:
    """Whether a forged LSA may be there until it is MaxAge: it never reached its originator."""
    return key[0] == "ospf" and key not in now.databases[now.owners.get(key[-1], name)]


def differences(now: Seen, before: Seen) -> list[str]:
    """What is not as before, and what routers disagree on."""
    found = []
    for name, table in before.routes.items():
        for prefix in sorted(table.keys() | now.routes[name].keys(), key=str):
            was, is_ = table.get(prefix), now.routes[name].get(prefix)
            if was != is_:
                found.append(f"{name}: {prefix}: {was} is now {is_}")
    for name, neighbors in before.adjacencies.items():
        if neighbors != now.adjacencies[name]:
            found.append(f"{name}: adjacencies {neighbors} are now {now.adjacencies[name]}")
    agreed: Database = {}
    for name, held in now.databases.items():
        missing = before.databases[name].keys() ^ held.keys()
        found += [
            f"{name}: {key} is {'there' if key in held else 'gone'}"
            for key in missing
            if key not in held or not may_stay(name, key, now)
        ]
        for key, instance in held.items():
            if key in before.databases[name] and agreed.setdefault(key, instance) != instance:
                found.append(f"{name}: {key} is {instance} elsewhere {agreed[key]}")
    return found
