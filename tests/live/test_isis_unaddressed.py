"""Links without addresses of their own: IPv4 goes over IPv6 next hops, weighted, in the kernel."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.extensions.lab.kernel_view import shares
from tests.live.daemons import LINKS, RIGHT_STUB
from tests.live.isis_daemons import STUBS, IsisPair, running_isis_pair
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

FULL_RATE, A_THIRD = "rate 30mbit burst 64kb limit 256kb", "rate 10mbit burst 64kb limit 256kb"
DATAGRAMS = 50


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[IsisPair]:
    with running_isis_pair("x", tmp_path, numbered=False) as made:
        yield made


def test_ipv4_is_routed_over_links_that_have_link_local_addresses_only(pair: IsisPair):
    """Both families over both links by the far ends' fe80 addresses; weights follow capacity."""
    for link in LINKS:
        assert "inet " not in pair.left.netns.ip("addr", "show", "dev", link)
        for end in (pair.left, pair.right):
            end.netns.run(["tc", *f"qdisc replace dev {link} root tbf {FULL_RATE}".split()])
    for prefix in STUBS:
        wait_for(lambda p=prefix: by_link_local(pair, p) == set(LINKS), 40, f"links to {prefix}")

    weigh(pair, 1.0)
    pair.left.netns.run(["tc", *f"qdisc replace dev u0 root tbf {A_THIRD}".split()])
    weigh(pair, 1 / 3)
    assert delivered(pair) == DATAGRAMS


def by_link_local(pair: IsisPair, prefix: str) -> set[str]:
    """The interfaces over which the left kernel sends to a link-local address.

    Until the neighbor's address has passed duplicate address detection, its hellos carry only the
    IPv4 address of its loopback, and that is the gateway.
    """
    hops = pair.view.hops(prefix)
    return {hop.interface for hop in hops if hop.gateway and hop.gateway.startswith("fe80::")}


def weigh(pair: IsisPair, first: float) -> None:
    """Wait until the first link has this share of the second's, toward both families."""

    def ratios() -> list[float]:
        found = [shares(pair.view.hops(prefix)) for prefix in STUBS]
        return [share["u0"] / share["u1"] for share in found if len(share) == len(LINKS)]

    wait_for(lambda: ratios() == pytest.approx([first] * 2, rel=0.02), 40, f"{first}: {ratios()}")


def delivered(pair: IsisPair) -> int:
    """Send datagrams from one stub network to the other by the kernels; how many arrive."""
    target = (str(RIGHT_STUB).replace(".0/24", ".1"), 4096)
    with (
        pair.right.netns.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
        pair.left.netns.socket(socket.AF_INET, socket.SOCK_DGRAM) as source,
    ):
        sink.bind(target)
        sink.settimeout(2.0)
        source.bind(("10.0.91.1", 0))
        for _ in range(DATAGRAMS):
            source.sendto(b"x", target)
        count = 0
        try:
            while count < DATAGRAMS:
                sink.recv(16)
                count += 1
        except TimeoutError:
            pass
        return count
