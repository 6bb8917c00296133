"""The topologies that can be generated, in the order of the list: a module of this package each."""

from __future__ import annotations

NAMES = (
    "clos3",
    "clos5",
    "rails",
    "sites",
    "fat-tree",
    "dragonfly",
    "torus",
    "hypercube",
    "full-mesh",
    "star",
    "clustered",
    "random",
    "permutation",
)
"""The names of the commands; a dash is an underscore in the module's name."""
