"""What ``show counters`` counts since start: by protocol, group and name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fared.router.router import Router
from fared.router.speaker import ISIS, OSPF

if TYPE_CHECKING:
    from fared.isis.engine import IsisEngine
    from fared.ospf.engine import OspfEngine

Groups = dict[str, Mapping[str, int]]
_NO_PROTOCOL = ""


def counters_of(
    router: Router,
    *,
    packets: Mapping[str, int],
    frames: Mapping[str, int],
    operations: Mapping[str, int],
    loads: Mapping[str, int],
) -> dict[str, Groups]:
    """Gather them; ``packets`` and ``frames`` are counted by the sockets of each protocol.

    ``operations`` on the kernel by kind and result; ``loads``: measurements by result. What is of no protocol is under the empty
    name.
    """
    found: dict[str, Groups] = {}
    if OSPF in router.speakers:
        found[OSPF] = _ospf(router.engine) | {"sockets": dict(packets)}
    if ISIS in router.speakers:
        found[ISIS] = _isis(router.isis) | {"isis-sockets": dict(frames)}
    found[_NO_PROTOCOL] = {
        "computations": {
            name: router.journal.counts[name] for name in ("spf", "capacity", "adaptation", "drift")
        },
        "load-samples": {result: loads[result] for result in ("ok", "failed")},
        "fib": {"group-rewrite": 0, **router.planner.counters},
        "kernel": dict(operations),
    }
    return found


def _ospf(engine: OspfEngine) -> Groups:
    counted = engine.counters
    return {
        "packets": {f"{way} {kind}": n for (way, kind), n in counted.packets.items()},
        "packet-errors": dict(counted.errors),
        "neighbor-transitions": {f"{a} -> {b}": n for (a, b), n in counted.transitions.items()},
        "lsas": dict(counted.lsas),
    }


def _isis(engine: IsisEngine) -> Groups:
    counted = engine.counters
    return {
        "pdus": {f"{way} {kind}": n for (way, kind), n in counted.pdus.items()},
        "pdu-errors": dict(counted.errors),
        "adjacency-transitions": {f"{a} -> {b}": n for (a, b), n in counted.transitions.items()},
        "lsps": dict(counted.lsps),
    }
