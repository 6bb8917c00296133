"""SIGTERM: neighbors are notified at once, and the kernel is left as before the start."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from fared.extensions.lab.kernel_view import KernelView
from tests.live import daemons
from tests.live.daemons import LEFT, LEFT_STUB, LINKS, RIGHT_STUB, Json, Pair
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

DEAD_INTERVAL = 40
FAREWELL = 1.5
"""Seconds: a busy neighbor, too, is to have turned away before the routes go."""
STOPPED_WITHIN = 20
"""``TimeoutStopSec`` of the unit."""
FOREIGN_ROUTE, FOREIGN_NEXTHOPS = "198.51.100.0/24", (5, 6)


@pytest.fixture
def leaving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair("x", tmp_path_factory.mktemp("exit"), configure)
    pair.left.altered = {"FARED_TEST_FAREWELL": str(FAREWELL)}
    try:
        pair.start()
        yield pair
    finally:
        pair.close()


def configure(identity: str, hostname: str) -> Json:
    """What happens before long is not for want of hellos."""
    config = daemons._config(identity, hostname)
    for link in LINKS:
        config["ospf"]["areas"]["0.0.0.0"]["interfaces"][link]["dead-interval"] = DEAD_INTERVAL
    return config


def objects(pair: Pair, protocol: str) -> tuple[list[str], list[int]]:
    """Destinations and next-hop ids of a protocol number in the left kernel."""
    ip = pair.left.netns.ip
    routes = json.loads(ip("-json", "route", "show", "protocol", protocol) or "[]")
    nexthops = json.loads(ip("-json", "nexthop", "show", "protocol", protocol) or "[]")
    return [route["dst"] for route in routes], [hop["id"] for hop in nexthops]


def test_a_clean_exit_flushes_lsas_first_and_removes_only_routes_of_fared(leaving: Pair):
    """At once: LSAs flushed, then routes, groups and next hops gone, exit code 0.

    With ``fib: on-exit: keep`` the kernel's part stays, for a planned restart.
    """
    left, right = leaving.left, leaving.right
    left.netns.batch(
        "ip",
        [
            "nexthop add id 5 via 10.129.0.1 dev u0 protocol 99",
            "nexthop add id 6 group 5 protocol 99",
            f"route add {FOREIGN_ROUTE} nhid 6 protocol 99",
        ],
    )
    routes, nexthops = objects(leaving, "201")
    assert RIGHT_STUB in routes
    assert len(nexthops) >= 3, "two next hops and a group"
    far = KernelView(right.netns)
    lost = withdrawn = False
    begun = time.monotonic()
    left.process.terminate()
    while left.process.poll() is None:
        assert time.monotonic() - begun < STOPPED_WITHIN
        withdrawn = withdrawn or not leaving.view.hops(RIGHT_STUB)
        lost = lost or not far.hops(LEFT_STUB)  # looked at last: it went before the other
        assert lost or not withdrawn
        time.sleep(0.002)  # the daemons may need this processor
    assert left.process.returncode == 0
    assert not far.hops(LEFT_STUB), "not only after the dead interval"
    assert objects(leaving, "201") == ([], [])
    assert objects(leaving, "99") == ([FOREIGN_ROUTE], list(FOREIGN_NEXTHOPS))
    assert not left.socket.exists()
    assert left.complaints() == []
    wait_for(
        lambda: not advertised(leaving),
        DEAD_INTERVAL / 2,
        "the LSAs of the one that left are flushed",
    )

    left.altered = {}
    left.config["fib"] = {"on-exit": "keep"}
    left.start()
    leaving.await_routes()
    before = leaving.view.routes(), objects(leaving, "201")
    code, seconds = left.terminate()
    assert (code, seconds < STOPPED_WITHIN) == (0, True)
    assert (leaving.view.routes(), objects(leaving, "201")) == before
    wait_for(
        lambda: not far.hops(LEFT_STUB), DEAD_INTERVAL / 2, "the neighbor turns away all the same"
    )
    far.close()


def advertised(pair: Pair) -> list[str]:
    """What the right router's database holds of the left one."""
    document = json.dumps(pair.right.show("database"))
    return [line for line in document.split("{") if f'"adv_router": "{LEFT}"' in line]
