"""Eight links between two routers, and links without addresses, on the real kernel."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM
from typing import Any

import pytest

from fared.extensions.lab.kernel_view import Hop, KernelView
from fared.extensions.lab.namespaces import Netns
from tests.live.daemons import Live
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

BUNDLE = tuple(f"b{number}" for number in range(8))
IDS = ("10.255.8.1", "10.255.8.2")
SOON = 30.0


class Bundle:
    """Two routers and veth links between them, numbered or not."""

    def __init__(self, directory: Path, links: tuple[str, ...], *, numbered: bool) -> None:
        self.links = links
        name = f"bundle{os.getpid()}"
        self.left, self.right = (
            Live(Netns.create(f"{name}{tag}"), directory / tag, _config(identity, tag, links))
            for identity, tag in zip(IDS, "ab", strict=True)
        )
        far = self.right.netns.name
        wires = [f"link add {link} type veth peer name {link} netns {far}" for link in links]
        self.left.netns.batch("ip", wires)
        for number, daemon in enumerate((self.left, self.right)):
            lines = [f"addr add {IDS[number]}/32 dev lo"]
            for index, link in enumerate(links):
                if numbered:
                    lines.append(f"addr add 10.129.{index}.{number}/31 dev {link}")
                lines.append(f"link set {link} up")
            daemon.netns.batch("ip", lines)
        self.view = KernelView(self.left.netns)
        self.back = KernelView(self.right.netns)

    def start(self) -> None:
        self.left.start()
        self.right.start()
        self.await_links(set(self.links))
        wait_for(lambda: len(self.back.hops(f"{IDS[0]}/32")) == len(self.links), SOON, "and back")

    def hops(self) -> tuple[Hop, ...]:
        """How the left kernel reaches the right loopback."""
        return self.view.hops(f"{IDS[1]}/32")

    def await_links(self, links: set[str]) -> None:
        """Wait until the left kernel uses exactly these links."""
        what = f"routes over {sorted(links)}"
        wait_for(lambda: {hop.interface for hop in self.hops()} == links, SOON, what)

    def close(self) -> None:
        self.view.close()
        self.back.close()
        for daemon in (self.left, self.right):
            daemon.kill()
            daemon.netns.delete()


def _config(identity: str, hostname: str, links: tuple[str, ...]) -> dict[str, Any]:
    timers = {"hello-interval": 1, "dead-interval": 4}
    interfaces = {"lo": {"passive": True}, **{link: {**timers, "cost": 10} for link in links}}
    return {
        "router-id": identity,
        "hostname": hostname,
        "ospf": {"areas": {"0.0.0.0": {"interfaces": interfaces}}},
    }


@pytest.fixture
def eight(tmp_path: Path) -> Iterator[Bundle]:
    made = Bundle(tmp_path, BUNDLE, numbered=True)
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def unnumbered(tmp_path: Path) -> Iterator[Bundle]:
    made = Bundle(tmp_path, BUNDLE[:2], numbered=False)
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_eight_parallel_links_share_a_route_seven_remain_after_a_loss_and_max_paths_limits_them(
    eight: Bundle,
):
    assert [hop.weight for hop in eight.hops()] == [1] * 8
    eight.left.netns.ip("link", "set", "b3", "down")
    eight.await_links(set(BUNDLE) - {"b3"})
    assert [hop.weight for hop in eight.hops()] == [1] * 7
    eight.left.netns.ip("link", "set", "b3", "up")
    eight.await_links(set(BUNDLE))

    fewer = copy.deepcopy(eight.left.config)
    fewer["ospf"]["max-paths"] = 2
    eight.left.reload(fewer)
    wait_for(lambda: len(eight.hops()) == 2, SOON, "two of the eight")
    eight.left.reload()
    eight.await_links(set(BUNDLE))
    assert eight.left.complaints() == []


def test_links_without_addresses_carry_traffic_by_onlink_next_hops(unnumbered: Bundle):
    hops = unnumbered.hops()
    assert {(hop.interface, hop.gateway) for hop in hops} == {("b0", IDS[1]), ("b1", IDS[1])}
    ends = (unnumbered.left.netns, unnumbered.right.netns)
    for near, far in ((0, 1), (1, 0)):
        assert _arrives(ends[near], IDS[near], ends[far], IDS[far])
    rows = unnumbered.left.show("neighbors")["neighbors"]
    assert {(row["address"], row["state"]) for row in rows} == {(IDS[1], "Full")}

    # one link gets addresses at run time, and then loses them again
    for number, daemon in enumerate((unnumbered.left, unnumbered.right)):
        daemon.netns.ip("addr", "add", f"10.129.0.{number}/31", "dev", "b0")
    numbered = {("b0", "10.129.0.1"), ("b1", IDS[1])}
    wait_for(lambda: _ends(unnumbered) == numbered, SOON, "b0 is numbered")
    for number, daemon in enumerate((unnumbered.left, unnumbered.right)):
        daemon.netns.ip("addr", "del", f"10.129.0.{number}/31", "dev", "b0")
    borrowed = {("b0", IDS[1]), ("b1", IDS[1])}
    wait_for(lambda: _ends(unnumbered) == borrowed, SOON, "b0 borrows again")
    assert unnumbered.left.complaints() == []


def _ends(bundle: Bundle) -> set[tuple[str, str | None]]:
    return {(hop.interface, hop.gateway) for hop in bundle.hops()}


def _arrives(near: Netns, source: str, far: Netns, target: str) -> bool:
    """Whether a datagram gets from one loopback to the other."""
    with near.socket(AF_INET, SOCK_DGRAM) as sender, far.socket(AF_INET, SOCK_DGRAM) as receiver:
        receiver.bind((target, 0))
        receiver.settimeout(SOON)
        sender.bind((source, 0))
        sender.sendto(b"hello", receiver.getsockname())
        return receiver.recvfrom(16) == (b"hello", sender.getsockname())
