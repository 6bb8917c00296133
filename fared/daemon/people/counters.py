"""The content of ``show counters``: counts since start, by protocol, group and name."""

from __future__ import annotations

from collections.abc import Mapping

from fared.router.instance import ProtocolInstance
from fared.router.router import Router

Groups = dict[str, Mapping[str, int]]
_NO_PROTOCOL = ""


def counters_of(
    router: Router,
    *,
    sockets: Mapping[str, Mapping[str, int]],
    operations: Mapping[str, int],
    loads: Mapping[str, int],
    edge: Mapping[str, int],
) -> dict[str, Groups]:
    """Return all counters; ``sockets`` has those of each protocol's sockets.

    ``operations`` counts operations on the kernel by kind and result, ``loads`` measurements by
    result, ``edge`` unexpected events that the daemon survived. Counters of no protocol have the
    empty name.
    """
    found = {
        name: _of_protocol(instance, sockets.get(name, {}))
        for name, instance in router.instances.items()
    }
    programming = router.spraying.programming
    found[_NO_PROTOCOL] = {
        "computations": {
            name: router.journal.counts[name] for name in ("spf", "capacity", "adaptation", "drift")
        },
        "load-samples": {result: loads[result] for result in ("ok", "failed")},
        "fib": {"group-rewrite": 0, **router.planner.counters},
        "spray": {} if programming is None else dict(programming.planner.counters),
        "kernel": dict(operations),
        "edge": dict(edge),
    }
    return found


def _of_protocol(instance: ProtocolInstance, sockets: Mapping[str, int]) -> Groups:
    """Return an engine's counters, in the terms of its protocol."""
    protocol, counted = instance.protocol, instance.engine.counters
    packet, neighbor, entry = (
        word.lower() for word in (protocol.packet, protocol.neighbor, protocol.entry)
    )
    changes = {f"{a} -> {b}": n for (a, b), n in counted.transitions.items()}
    return {
        f"{packet}s": {f"{way} {kind}": n for (way, kind), n in counted.packets.items()},
        f"{packet}-errors": dict(counted.errors),
        f"{packet}s-discarded": dict(counted.discarded),
        f"{neighbor}-transitions": changes,
        f"{entry}s": dict(counted.lsdb),
        "sockets": dict(sockets),
    }
