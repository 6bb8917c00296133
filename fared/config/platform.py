"""The ``platform`` section: what else than the kernel tells facts of links."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from fared.config import values
from fared.config.section import Reload, Section
from fared.runtime.sockets import SONIC_DATABASES


class Platform(Section, frozen=True):
    """``kind: auto`` is SONiC where the file ``databases`` is, else the kernel.

    ``redis``: the socket; None: that of the file.
    """

    kind: Annotated[Literal["auto", "kernel", "sonic"], Reload.RESTART] = "auto"
    databases: Annotated[values.NotEmpty, Reload.RESTART] = SONIC_DATABASES
    redis: Annotated[values.NotEmpty | None, Reload.RESTART] = None

    def is_sonic(self) -> bool:
        """Whether this machine is to be a switch with SONiC."""
        return self.kind == "sonic" or (self.kind == "auto" and Path(self.databases).exists())
