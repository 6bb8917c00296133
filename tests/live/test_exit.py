"""SIGTERM: neighbors are notified at once, and the kernel is left as before the start."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from fared.lab.kernel_view import KernelView
from tests.live.daemons import LEFT, LEFT_STUB, RIGHT_STUB, Pair, running_pair
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

DEAD_INTERVAL = 4
FOREIGN_ROUTE, FOREIGN_NEXTHOPS = "198.51.100.0/24", (5, 6)


@pytest.fixture
def leaving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running_pair("x", tmp_path_factory.mktemp("exit")) as pair:
        yield pair


def objects(pair: Pair, protocol: str) -> tuple[list[str], list[int]]:
    """Destinations and next-hop ids of a protocol number in the left kernel."""
    ip = pair.left.netns.ip
    routes = json.loads(ip("-json", "route", "show", "protocol", protocol) or "[]")
    nexthops = json.loads(ip("-json", "nexthop", "show", "protocol", protocol) or "[]")
    return [route["dst"] for route in routes], [hop["id"] for hop in nexthops]


def test_a_clean_exit_flushes_lsas_first_and_removes_only_routes_of_fared(leaving: Pair):
    """Within two seconds: LSAs flushed, then routes, groups and next hops gone, exit code 0.

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
    lost_at = withdrawn_at = 0.0
    begun = time.monotonic()
    left.process.terminate()
    while left.process.poll() is None:
        assert time.monotonic() - begun < 5
        if not lost_at and not far.hops(LEFT_STUB):
            lost_at = time.monotonic()
        if not withdrawn_at and not leaving.view.hops(RIGHT_STUB):
            withdrawn_at = time.monotonic()
        time.sleep(0.002)  # the daemons may need this processor
    ended = time.monotonic()
    assert left.process.returncode == 0
    assert ended - begun < 2
    assert 0 < lost_at - begun < DEAD_INTERVAL / 2, "not only after the dead interval of 4 s"
    assert lost_at < (withdrawn_at or ended)
    assert objects(leaving, "201") == ([], [])
    assert objects(leaving, "99") == ([FOREIGN_ROUTE], list(FOREIGN_NEXTHOPS))
    assert not left.socket.exists()
    assert left.complaints() == []
    wait_for(lambda: not advertised(leaving), 2, "the LSAs of the one that left are flushed")

    left.config["fib"] = {"on-exit": "keep"}
    left.start()
    leaving.await_routes()
    before = leaving.view.routes(), objects(leaving, "201")
    code, seconds = left.terminate()
    assert (code, seconds < 2) == (0, True)
    assert (leaving.view.routes(), objects(leaving, "201")) == before
    wait_for(
        lambda: not far.hops(LEFT_STUB), DEAD_INTERVAL / 2, "the neighbor turns away all the same"
    )
    far.close()


def advertised(pair: Pair) -> list[str]:
    """What the right router's database holds of the left one."""
    document = json.dumps(pair.right.show("database"))
    return [line for line in document.split("{") if f'"adv_router": "{LEFT}"' in line]
