"""The kinds of nodes, one module for each."""

from __future__ import annotations

from fared.lab.kinds.base import NodeKind
from fared.lab.kinds.bird import Bird
from fared.lab.kinds.fared import Fared
from fared.lab.kinds.frr import Frr
from fared.lab.kinds.linux import Linux

__all__ = ["NodeKind", "kind_of"]


def kind_of(name: str) -> NodeKind:
    """Return the kind of that name, which the topology has checked."""
    kinds: dict[str, NodeKind] = {
        "fared": Fared(),
        "frr": Frr(),
        "bird": Bird(),
        "linux": Linux(),
    }
    return kinds[name]
