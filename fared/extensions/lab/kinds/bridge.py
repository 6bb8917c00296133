"""A LAN segment: a bridge of the kernel with the links of all nodes at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.kinds.base import KernelOnly

_DEVICE = "bridge"


class Bridge(KernelOnly):
    """The kind ``bridge``."""

    def sysctls(self, plan: NodePlan) -> Mapping[str, object]:
        """Keep the segment out of IP: only the nodes at it have addresses."""
        del plan
        return {"ipv4.ip_forward": 0}

    def cli(self, directory: Path, arguments: Sequence[str]) -> list[str]:
        """Refuse: there is no daemon."""
        del arguments
        raise LabError(f"{directory.name} is a LAN segment; no program runs in it")


def bridge_commands(plan: NodePlan) -> Iterator[str]:
    """Yield the ``ip`` commands that make the bridge, which floods multicast as hubs do."""
    mtu = min((port.mtu for port in plan.ports), default=1500)
    yield f"link add name {_DEVICE} mtu {mtu} type bridge mcast_snooping 0"
    for port in plan.ports:
        yield f"link set dev {port.name} master {_DEVICE} up"
    yield f"link set dev {_DEVICE} up"
