"""Two daemons over an unnumbered link of BGP: they find each other, and change their key."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.extensions.lab.namespaces import Netns
from tests.kernel.netns import Namespaces
from tests.live.daemons import Json, Live
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

OWN = {1: "10.50.1.0/24", 2: "10.50.2.0/24"}
MORE = "10.50.3.0/24"
PATIENCE = 40.0


def config(number: int, key: str) -> Json:
    neighbor = {
        "remote-as": "external",
        "import": ["all"],
        "export": ["own"],
        "authentication": {"key": key},
    }
    return {
        "router-id": f"10.255.50.{number}",
        "bgp": {"as": 65000 + number, "networks": [OWN[number]], "neighbors": {"e0": neighbor}},
    }


@pytest.fixture
def two(tmp_path: Path) -> Iterator[dict[int, Live]]:
    namespaces = Namespaces()
    try:
        names = {number: namespaces.add() for number in OWN}
        namespaces.pair(names[1], names[2], "e0", None)
        daemons = {
            number: Live(Netns(name), tmp_path / name, config(number, "first"))
            for number, name in names.items()
        }
        try:
            yield daemons
        finally:
            for one in daemons.values():
                one.kill()
    finally:
        namespaces.close()


def has_route(one: Live, prefix: str) -> bool:
    """Whether the kernel of a daemon has a route to a network of the other."""
    return prefix in one.netns.ip("route", "show", "proto", "201")


def changes(one: Live) -> int:
    return sum(record["event"] == "neighbor-changed" for record in one.records())


@pytest.mark.rfc("RFC 2385")
def test_a_key_is_changed_by_a_reload_of_each_and_the_session_stays(two: dict[int, Live]) -> None:
    first, second = two[1], two[2]
    for one in two.values():
        one.start()
    for one, prefix in ((first, OWN[2]), (second, OWN[1])):
        wait_for(lambda o=one, p=prefix: has_route(o, p), PATIENCE, f"a route to {prefix}")
    before = [changes(one) for one in two.values()]
    for number, one in two.items():
        one.reload({**one.config, **config(number, "second")})
    # what is told now is signed with the new key
    more = copy.deepcopy({**first.config, **config(1, "second")})
    more["bgp"]["networks"].append(MORE)
    first.reload(more)
    wait_for(lambda: has_route(second, MORE), PATIENCE, "another route")
    assert [changes(one) for one in two.values()] == before
    assert not any(one.complaints() for one in two.values())
