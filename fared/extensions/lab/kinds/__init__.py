"""The kinds of nodes, one module for each."""

from __future__ import annotations

from fared.extensions.lab.kinds.base import NodeKind
from fared.extensions.lab.kinds.bird import Bird
from fared.extensions.lab.kinds.bridge import Bridge
from fared.extensions.lab.kinds.fared import Fared
from fared.extensions.lab.kinds.frr import Frr
from fared.extensions.lab.kinds.linux import Linux

__all__ = ["NodeKind", "kind_of"]


def kind_of(name: str) -> NodeKind:
    """Return the kind of that name, which the topology has checked."""
    kinds: dict[str, NodeKind] = {
        "fared": Fared(),
        "frr": Frr(),
        "bird": Bird(),
        "linux": Linux(),
        "bridge": Bridge(),
    }
    return kinds[name]
