"""What the tests of restarting routers of both protocols share: how a router leaves and comes back,
and what the others noticed."""

from __future__ import annotations

import random
from typing import Any

from fared.paths.ted.events import TedUpdated
from fared.protocols.igp.events import (
    AdjacencyChanged,
    GracefulRestartBegun,
    GracefulRestartRequested,
    LinkChanged,
    LogRecord,
)
from tests.igp.engines import Node
from tests.igp.protocols import PERIOD, Protocol

Marks = dict[int, int]
"""How many outputs each router had."""


def star(protocol: Protocol, *, leaves: tuple[int, ...] = (2, 3, 4), **changes: Any) -> Any:
    """Router 1 in the middle of others, which are connected to router 9 as well."""
    net = protocol.network()
    for number in (1, *leaves, 9):
        net.add(number, **{**protocol.graceful(), **changes})
    for number in leaves:
        net.join(1, number)
        net.join(9, number)
    protocol.settle(net)
    return net


def leave(net: Any, number: int, *, planned: bool) -> None:
    """End a process; a planned restart is announced first."""
    if planned:
        net.input(number, GracefulRestartRequested(PERIOD))
        net.until(lambda: net.nodes[number].engine.restart_announced, 1.0)
    net.stop(number)


def come_back(net: Any, number: int, *, planned: bool, remaining: float = PERIOD) -> Node:
    """Start a new process with the same links."""
    old = net.nodes[number]
    engine = type(old.engine)(old.settings, random.Random(5))
    node = net.nodes[number] = Node(number, engine, 5, old.settings, links=old.links)
    net.input(number, GracefulRestartBegun(remaining, planned))
    for link, of_link in node.links.values():
        net.input(number, LinkChanged(link, of_link))
    return node


def marks(net: Any, *numbers: int) -> Marks:
    return {n: len(net.nodes[n].outputs) for n in numbers}


def since_marks(net: Any, since: Marks, kind: type) -> list:
    return [
        (number, output)
        for number, mark in since.items()
        for _, output in net.nodes[number].outputs[mark:]
        if isinstance(output, kind)
    ]


def topology_changes(net: Any, since: Marks) -> list:
    """What others than the restarting router learnt of the graph since a mark."""
    return [(n, o.node, o.cause) for n, o in since_marks(net, since, TedUpdated)]


def lost(net: Any, since: Marks) -> list:
    """The adjacencies that others gained or lost since a mark."""
    return [(n, o) for n, o in since_marks(net, since, AdjacencyChanged) if o.gained_or_lost]


def results(node: Node, event: str = "graceful-restart-ended") -> list[str]:
    """How the restarts of a router ended."""
    return [log.fields["result"] for log in node.said(LogRecord) if log.event == event]


def helped(net: Any, number: int) -> list[str]:
    """How the restarts ended that a router helped."""
    return results(net.nodes[number], "graceful-restart-helper-ended")


def restart_unnoticed(protocol: Protocol, net: Any, *, planned: bool, away: float) -> None:
    """Router 1 of a star restarts, and no other has lost an adjacency, or seen a change.

    It is away for a part of the dead interval.
    """
    before, since = net.database(9), marks(net, 2, 3, 4, 9)
    leave(net, 1, planned=planned)
    net.run(away * protocol.dead_interval)
    node = come_back(net, 1, planned=planned)
    net.until(lambda: results(node) == ["completed"], 5.0)
    net.run(8.0)
    assert protocol.ready(net)
    assert lost(net, since) == []
    assert topology_changes(net, since) == []
    assert [helped(net, n) for n in (2, 3, 4)] == [["completed"]] * 3
    # All is there that was, what router 1 has originated with the next sequence number.
    after = net.database(9)
    assert set(after) == set(before)
    for key, (number, _) in before.items():
        own = protocol.originator(key) == protocol.identity(1)
        assert after[key][0] == number + own
