"""Unchanged hellos only restart the timer of a neighbor: a fast path that changes nothing else."""

from typing import Any

import pytest

from tests.igp.protocols import Protocol


def story(protocol: Protocol) -> Any:
    """Neighbors appear, change, stop and return, on a LAN and on point-to-point links."""
    net = protocol.network(seed=5)
    net.lan(1, 2, 3, priorities={3: 90})
    cable = net.join(1, 4)
    net.join(4, 5)
    net.run(8)
    for number, priority in ((2, 100), (2, 9), (1, 0), (1, 1)):
        net.change(number, 2, **{protocol.priority: priority})
        net.run(5)
    net.stop(3)
    net.run(7)
    for silent in (True, False):
        cable.cut = silent
        net.run(6)
    for up in (False, True):
        net.set_up(cable, up=up)
        net.run(9)
    return net


@pytest.mark.rfc("RFC 2328 §10.5", "ISO 10589 §8.2.5.2")
def test_a_network_behaves_as_if_each_hello_were_processed_in_full(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
):
    def told() -> list[object]:
        net = story(protocol)
        return [
            (number, repr(node.outputs), node.engine.counters, protocol.neighbors(net, number))
            for number, node in net.nodes.items()
        ]

    short = told()
    monkeypatch.setattr(protocol.recognizer, "repeated", lambda *_: False)
    assert short == told()
