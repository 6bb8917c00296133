"""Plays an act by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from fared.extensions.lab.acts import elephant, spines, tenant
from fared.extensions.lab.acts.stage import DemoStage, perform
from fared.extensions.lab.topology import LabTopology

Act = tuple[Callable[[LabTopology], LabTopology], Callable[[DemoStage], None]]
_ACTS: Final[Mapping[str, Act]] = MappingProxyType(
    {
        "elephant": (elephant.prepared, elephant.play),
        "tenant": (tenant.prepared, tenant.play),
        "spines": (spines.prepared, spines.play),
    }
)


def play(topology: LabTopology, act: str, picture: Path | None = None) -> int:
    """Play an act of ``names.ACTS`` inside a sandbox; return 0, or 1 after telling what failed."""
    prepared, performed = _ACTS[act]
    return perform(prepared(topology), performed, picture=picture)
