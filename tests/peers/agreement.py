"""Agreement of several implementations: the same LSAs, decoded alike, in each area."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fared.core.ids import dotted
from fared.core.wire import Reader
from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.protocols.ospf.packet.bodies import RouterLinkType, RouterLsa, SummaryLsa
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.lsa import Lsa, LsType, decode_lsa
from tests.peers.oracle import pieces
from tests.peers.peers import AS_SCOPE, MAX_AGE, Database, LsaId, databases, fared
from tests.waiting import wait_for

_BIRD_AREA = re.compile(r"^area (\S+)$")
_BIRD_ROUTER = re.compile(r"^\trouter (\S+)$")
_BIRD_PART = re.compile(r"^\t\t(router|stubnet|xnetwork|xrouter) (\S+) metric (\d+)$")


class Part(NamedTuple):
    """An item that a router advertises, in BIRD's terms: router, stubnet, xnetwork or xrouter."""

    word: str
    target: str
    metric: int


def await_agreement(fabric: Fabric, seconds: float = 15.0) -> dict[str, Database]:
    """Wait until all routers of each partition of an area, and of the AS, have the same LSAs.

    Returns the LSAs by scope; those of a partitioned area are the union of its partitions.
    """
    found: dict[str, Database] = {}

    def differing() -> dict[str, list[LsaId]]:
        held = {plan.name: databases(fabric.node(plan.name)) for plan in fabric.plan.routers}
        scopes = [(dotted(area), members) for area, members in pieces(fabric.plan)]
        found.clear()
        result = {}
        for scope, members in [*scopes, (AS_SCOPE, set(held))]:
            common = frozenset.intersection(*(held[name][scope] for name in members))
            found[scope] = found.get(scope, frozenset()) | common
            for name in sorted(members):
                if held[name][scope] != common:
                    result[f"{name} {scope}"] = sorted(held[name][scope] - common)
        return result

    wait_for(
        lambda: not differing(), seconds, lambda: f"equal databases, but {differing()}", pause=0.2
    )
    return found


def read_by_bird(node: RunningNode) -> dict[str, dict[str, set[Part]]]:
    """BIRD's decoded database (``show ospf state all``), by area and router."""
    areas: dict[str, dict[str, set[Part]]] = {}
    parts: set[Part] = set()
    for line in node.cli("show", "ospf", "state", "all").splitlines():
        if area := _BIRD_AREA.match(line):
            routers = areas.setdefault(area[1], {})
        elif router := _BIRD_ROUTER.match(line):
            parts = routers.setdefault(router[1], set())
        elif part := _BIRD_PART.match(line):
            parts.add(Part(part[1], part[2], int(part[3])))
    return areas


def read_by_fared(node: RunningNode) -> dict[str, dict[str, set[Part]]]:
    """The same of fared's database, from the bodies of its router and summary LSAs."""
    areas: dict[str, dict[str, set[Part]]] = {}
    for area in fared(node).request("show lsdb")["areas"]:
        routers = areas.setdefault(area["area"], {})
        for row in area["lsas"]:
            lsa = decode_lsa(Reader(bytes.fromhex(row["hex"])))
            if row["age"] < MAX_AGE:
                origin = dotted(lsa.header.advertising_router)
                routers.setdefault(origin, set()).update(_parts(lsa))
    return areas


def _parts(lsa: Lsa) -> Iterator[Part]:
    body = decode_body(lsa)
    if isinstance(body, RouterLsa):
        for link in body.links:
            target = dotted(link.link_id)
            if link.link_type == RouterLinkType.STUB:
                yield Part("stubnet", f"{target}/{link.link_data.bit_count()}", link.metric)
            else:
                yield Part("router", target, link.metric)
    elif isinstance(body, SummaryLsa):
        target = dotted(lsa.header.link_state_id)
        if lsa.header.ls_type == LsType.SUMMARY_ASBR:
            yield Part("xrouter", target, body.metric)
        else:
            yield Part("xnetwork", f"{target}/{body.network_mask.bit_count()}", body.metric)
