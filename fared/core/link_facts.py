"""What a platform knows of links beside the kernel: the one interface of such facts.

On a switch whose chip forwards, the kernel sees only packets of the CPU, and speeds of its host
interfaces are not those of the ports. What a platform does not know is the kernel's fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from fared.core.link_errors import ErrorCounters

KERNEL = "kernel"
MANAGEMENT_PORTS: Final = frozenset({"eth0", "eth1-midplane", "docker0"})
"""Interfaces of a switch with SONiC that lead to no port of the chip."""


class PlatformLink(msgspec.Struct, frozen=True):
    """Facts of one link. ``speed`` in bytes/s; None: the kernel's. ``down``: whatever it says.

    ``members`` of a LAG: how many are enabled, and how many there are. ``min_links``: with fewer
    of them enabled it is down. ``vrf``: empty for the default one. ``management``: it is
    no port of the chip.
    """

    speed: float | None = None
    down: bool = False
    members: tuple[int, int] | None = None
    min_links: int = 0
    vrf: str = ""
    management: bool = False


class PlatformLoad(msgspec.Struct, frozen=True):
    """The outbound load of a link in bytes/s, and when it was measured (loop time)."""

    rate: float
    at: float


class LinkPlatform(Protocol):
    """Facts of links by name. Each answer is what is known now: none waits."""

    name: str
    error: str | None
    """Why it cannot be read now; None: it can."""
    failures: int
    """How often it was lost."""

    def wrong_values(self) -> Mapping[str, int]:
        """Count the values that were not what they should be, by reason."""

    def link(self, name: str) -> PlatformLink | None:
        """Return the facts of a link; None: the kernel has them all."""

    def counts(self, name: str) -> bool:
        """Whether the platform counts the packets of a link, and the kernel only the CPU's."""

    def load(self, name: str) -> PlatformLoad | None:
        """Return the last load of such a link; None: it has not been measured."""

    def errors(self, name: str, *, drops: bool, fec: bool) -> ErrorCounters | None:
        """Return the error counters of such a link; None: they are not known."""


class KernelPlatform:
    """All facts are the kernel's."""

    name = KERNEL
    error: str | None = None
    failures = 0

    def wrong_values(self) -> Mapping[str, int]:
        """There are none."""
        return {}

    def link(self, name: str) -> None:  # noqa: ARG002 - of no link
        """Nothing is known beside the kernel."""
        return

    def counts(self, name: str) -> bool:  # noqa: ARG002 - of no link
        """The kernel counts all packets."""
        return False

    def load(self, name: str) -> None:  # noqa: ARG002 - of no link
        """The kernel measures all loads."""
        return

    def errors(self, name: str, *, drops: bool, fec: bool) -> None:  # noqa: ARG002 - of no link
        """The kernel counts all errors."""
        return


KERNEL_PLATFORM = KernelPlatform()
