"""Records the fault of ``test_refused_route.py`` again, for a version that cannot read it.

Argument: the directory to write, ``tests/recording/test_refused_route.recording``.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, clos3
from tests.recording.taped_network import TapedNetwork


def main() -> None:
    """Leaf L1 of a 2x2 fabric, whose kernel has no memory for a route, and which loses a link."""
    directory = Path(sys.argv[1])
    network = TapedNetwork(directory.parent / "fabric", 7, only="L1")
    fabric = clos3(2, 2, network=network)
    leaf = network.nodes["L1"]
    leaf.kernel.refuse[fabric.leaf_prefixes["L2"]] = errno.ENOMEM
    network.start_all()
    network.run_until_quiet(60)
    network.set_capacity("S2", "L2", DEFAULT_CAPACITY / 4)
    network.run_for(2)
    leaf.kernel.refuse.clear()
    network.run_for(5)
    network.set_link("L1", "S1", up=False)
    network.run_for(1)
    network.end()
    (directory.parent / "fabric" / "L1").rename(directory)
    (directory.parent / "fabric").rmdir()


if __name__ == "__main__":
    main()
