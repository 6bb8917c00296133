"""Which demonstration a fabric has: an act, aggregation, leaves between others' spines, or weights.

Imported when one is played: networkx takes 100 ms, which other commands, each node in a container
among them, need not pay.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fared.extensions.lab import pictures, sandbox
from fared.extensions.lab.acts import leaves
from fared.extensions.lab.acts.play import play
from fared.extensions.lab.acts.stage import perform
from fared.extensions.lab.demo import run_demo
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.ina_demo import run_ina_demo
from fared.extensions.lab.topology import LabTopology


def demonstrate(
    source: LabTopology, *, as_kind: str | None, act: str | None, picture: Path | None
) -> int:
    """Play the act of that name, or what the fabric is for; return the exit code.

    Raises LabError where namespaces cannot be made, or the picture not be drawn.
    """
    problem = sandbox.problem()
    if problem is not None:
        raise LabError(problem)
    if picture is not None:
        pictures.check(picture)
    return sandbox.run(_chosen(source, as_kind, act, picture))


def _chosen(
    source: LabTopology, as_kind: str | None, act: str | None, picture: Path | None
) -> Callable[[], int]:
    if act is not None:
        return lambda: play(source, act, picture)
    if as_kind is None and leaves.fits(source):
        return lambda: perform(leaves.prepared(source), leaves.play, picture=picture)
    if as_kind is None and any(node.ina for node in source.nodes.values()):
        return lambda: run_ina_demo(source, picture)
    return lambda: run_demo(source, as_kind, picture)
