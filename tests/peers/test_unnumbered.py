"""Links without addresses of their own between fared and FRR, and fared and BIRD."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fared.lab.kernel_view import KernelView
from fared.lab.namespaces import Netns
from tests.peers.lan import PORT, Lan, Member
from tests.peers.peers import await_equal_databases, fared, tell, until
from tests.peers.recordings import complaints, rejected

pytestmark = [pytest.mark.netns, pytest.mark.peers]

PEERS = {"R": "frr", "B": "bird"}


class Star(Lan):
    """F in the middle, a link to each peer; peers borrow their loopback's address, F has none."""

    def __init__(self, directory: Path) -> None:
        self.members, self.views = {}, {}
        prefix = f"star{os.getpid()}"
        for number, (name, kind) in enumerate({"F": "fared", **PEERS}.items(), start=1):
            (directory / name).mkdir()
            (directory / name).chmod(0o777)  # FRR's daemons are not root
            ports = tuple(PEERS) if kind == "fared" else (PORT,)
            netns = Netns.create(f"{prefix}{name}")
            member = Member(name, kind, number, 1, netns, directory / name, "point-to-point", ports)
            self.members[name] = member
            self.views[name] = KernelView(netns)
            for key in ("all", "default"):
                netns.sysctl(f"ipv4.conf.{key}.rp_filter", 0)
            netns.sysctl("ipv4.ip_forward", 1)
            netns.ip("addr", "add", f"{member.router_id}/32", "dev", "lo")
        center = self.members["F"].netns
        for name in PEERS:
            peer = self.members[name]
            wire = f"type veth peer name {PORT} netns {peer.netns.name}"
            center.batch("ip", [f"link add {name} {wire}", f"link set {name} up"])
            peer.netns.batch(
                "ip", [f"addr add {peer.router_id}/32 dev {PORT}", f"link set {PORT} up"]
            )

    def close(self) -> None:
        """End everything and leave nothing behind."""
        for member in self.members.values():
            member.kill()
            self.views[member.name].close()
            member.netns.delete()


@pytest.fixture
def star(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    directory = tmp_path_factory.mktemp("star")
    for parent in (directory, directory.parent):
        parent.chmod(0o755)
    made = Star(directory)
    try:
        yield made
    finally:
        made.close()


def test_fared_frr_and_bird_meet_on_unnumbered_links(star: Any):
    """Adjacencies, equal databases, onlink next hops from everybody to everybody."""
    for member in star.members.values():
        member.start()
    ids = {name: star.node(name).router_id for name in star.members}

    def routed() -> bool:
        center = all(
            {(h.interface, h.gateway) for h in star.hops("F", star.node(name))}
            == {(name, ids[name])}
            for name in PEERS
        )
        across = all(
            {(h.interface, h.gateway) for h in star.hops(one, star.node(other))}
            == {(PORT, ids["F"])}
            for one, other in (("R", "B"), ("B", "R"))
        )
        return center and across

    def shown() -> dict[str, str]:
        return {name: star.node(name).netns.ip("route") for name in star.members}

    seconds = until(routed, 20.0, f"routes over unnumbered links: {shown()}")
    tell(f"routes over unnumbered links after {seconds:.2f} s")
    await_equal_databases(star, 15.0)
    rows = fared(star.node("F")).request("show neighbors")["neighbors"]
    assert {row["address"]: row["state"] for row in rows} == {ids["R"]: "Full", ids["B"]: "Full"}
    assert complaints(star) == {}
    assert rejected(star) == {}
