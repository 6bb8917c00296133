"""Two routers that run IS-IS, or both protocols, with or without addresses on their links."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.live.daemons import LINKS, RIGHT_STUB, Json, Live, Pair
from tests.waiting import wait_for

RIGHT_STUB6 = "2001:db8:92::/64"
LEFT_SYSTEM, RIGHT_SYSTEM = "0000.0000.0001", "0000.0000.0002"
STUBS = (RIGHT_STUB, RIGHT_STUB6)


def isis_section(system_id: str, **metrics: int) -> Json:
    """The ``isis`` section of a router with the links of the pair and a stub network."""
    link = {"network-type": "point-to-point", "hello-interval": 1, "hello-multiplier": 4}
    links = {name: {**link, "metric": metrics.get(name, 10)} for name in LINKS}
    return {
        "net": f"49.0001.{system_id}.00",
        "level": "level-2",
        "interfaces": {"lo": {"passive": True}, "d0": {"passive": True}, **links},
    }


class IsisPair(Pair):
    """Two routers with two parallel links, and a stub network of both families at each.

    Without ``numbered``, the links have link-local addresses only. ``ospf`` keeps the OSPF section.
    """

    def __init__(
        self, tag: str, directory: Path, *, numbered: bool = True, ospf: bool = False
    ) -> None:
        super().__init__(tag, directory)
        ends = ((self.left, LEFT_SYSTEM), (self.right, RIGHT_SYSTEM))
        for number, (daemon, system_id) in enumerate(ends):
            daemon.netns.batch(
                "ip",
                [
                    f"addr add 2001:db8:{91 + number}::1/64 dev d0 nodad",
                    *(() if numbered else self._addresses(number)),
                ],
            )
            if not ospf:
                del daemon.config["ospf"]
            daemon.config["isis"] = isis_section(system_id)

    @staticmethod
    def _addresses(number: int) -> list[str]:
        """Commands that remove the addresses of the links at one end."""
        return [f"addr del 10.129.{i}.{number}/31 dev {link}" for i, link in enumerate(LINKS)]

    def await_routes(self, seconds: float = 40) -> None:
        """Wait until both adjacencies are up at both ends and the kernel routes over both links.

        IPv6 comes later: a hello carries a link-local address once duplicate address detection is
        done with it.
        """
        for daemon in (self.left, self.right):
            wait_for(lambda d=daemon: adjacencies(d) == len(LINKS), seconds, "up")
            wait_for(daemon.settled, seconds, "the kernel holds what was computed")
        for prefix in STUBS:
            wait_for(lambda p=prefix: self.used(p) == set(LINKS), seconds, f"links to {prefix}")


def adjacencies(daemon: Live) -> int:
    """The number of IS-IS adjacencies that are up."""
    interfaces: list[Any] = daemon.show("lsdb", proto="isis")["interfaces"]
    return sum(len(interface["adjacencies"]) for interface in interfaces)


@contextlib.contextmanager
def running_isis_pair(tag: str, directory: Path, **options: bool) -> Iterator[IsisPair]:
    """Run two routers for a block, which begins when they have converged."""
    pair = IsisPair(tag, directory, **options)
    try:
        pair.start()
        yield pair
    finally:
        pair.close()
