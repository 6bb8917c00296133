"""A host: addresses, a route for each, no daemon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.kinds.base import KernelOnly
from fared.extensions.lab.source_routes import routed_by_source


class Linux(KernelOnly):
    """The kind ``linux``."""

    def sysctls(self, plan: NodePlan) -> Mapping[str, object]:
        """Return nothing: the kernel's defaults suit a host. One with several links is no router.

        A namespace may begin with the forwarding of the machine, and rails would meet in servers.
        """
        if not routed_by_source(plan):
            return {}
        six = {"ipv6.conf.all.forwarding": 0} if any(p.address6 for p in plan.ports) else {}
        return {"ipv4.ip_forward": 0, **six}

    def cli(self, directory: Path, arguments: Sequence[str]) -> list[str]:
        """Refuse: there is no daemon."""
        del arguments
        raise LabError(f"{directory.name} is a host; use `fared-lab exec {directory.name} ...`")
