"""``show spf``: the shortest paths, or the last computations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fared.management.documents import human
from fared.management.documents.cells import Columns, dim, plural_list
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.facts import Facts, NamedNode, Seconds
from fared.management.documents.happened import WhatChanged

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_FIRST_HOPS_SHOWN = 4


class SpfNode(NamedNode):
    """A vertex of the shortest-path DAG; ``first_hops`` are ids of neighbors.

    If the paths of families differ, each family has its own entry.
    """

    proto: str
    families: list[str]
    area: str
    metric: int
    first_hops: list[str]


class SpfRun(WhatChanged):
    """One computation. ``spf_ran`` False: only capacities were computed again.

    ``routes`` is the number of changed ones.
    """

    spf_ran: bool
    nodes: int
    edges: int
    routes: int
    duration: Seconds
    backoff: str


class SpfPaths(Facts):
    """The shortest paths to a node of an area, each from this router on; ``number``: of all.

    ``parents`` are the last nodes before it. Families with other paths have an entry of their own.
    """

    proto: str
    area: str
    families: list[str]
    metric: int
    first_hops: list[NamedNode]
    parents: list[NamedNode]
    paths: list[list[NamedNode]]
    number: int

    def show(self, paper: Paper) -> None:
        """Print where the paths begin, where they end, and the paths."""
        node, more = self.paths[0][-1], self.number - len(self.paths)
        where = f"{human.area_title(self.area)}, {', '.join(self.families)}"
        paper.heading(f"{node.name} ({node.id}): {where}", first=True)
        paper.facts(self, _PATHS)
        paper.indented(" > ".join(node.name for node in path) for path in self.paths)
        if more > 0:
            paper.line(f"  and {more} more")


class Spf(Answer, tag="fared-spf/1"):
    """``show spf`` (``nodes``) and ``show spf log`` (argument ``log`` true: ``log`` instead).

    Argument ``node``: only that one, with its ``paths``. Argument ``proto`` optional; ``root`` is
    the id in the first protocol that is shown.
    """

    root: str
    backoff: str
    nodes: list[SpfNode] | msgspec.UnsetType = msgspec.UNSET
    log: list[SpfRun] | msgspec.UnsetType = msgspec.UNSET
    paths: list[SpfPaths] | msgspec.UnsetType = msgspec.UNSET

    def show(self, paper: Paper) -> None:
        """Print the shortest paths of each protocol, or the computations."""
        if self.paths is not msgspec.UNSET:
            for index, paths in enumerate(self.paths):
                if index:
                    paper.line()
                paths.show(paper)
            return
        for _, nodes in paper.by_protocol(self.nodes) if self.nodes is not msgspec.UNSET else ():
            _show_tree(nodes, paper)
        if self.log is not msgspec.UNSET:
            columns: Columns = {
                ">Ago": lambda run: paper.ago(run.at),
                "What": lambda run: "SPF" if run.spf_ran else "capacity",
                ">Took": "duration",
                ">Nodes": "nodes",
                ">Routes": "routes",
                "~What changed": "why",
            }
            paper.table(self.log, columns)
            paper.line(dim(f"back-off: {self.backoff}"))


_PATHS: Columns = {
    "Metric": "metric",
    "First hops": lambda p: ", ".join(hop.name for hop in p.first_hops) or human.DASH,
    "Parents": lambda p: ", ".join(node.name for node in p.parents) or human.DASH,
    "Paths": "number",
}


def _show_tree(nodes: list[SpfNode], paper: Paper) -> None:
    """Print the shortest paths of one protocol; families are named if their paths differ."""
    names = {node.id: node.name for node in nodes}
    families = {family for node in nodes for family in node.families}

    def hops(node: SpfNode) -> str:
        shared = node.families
        only = f" ({shared[0]} only)" if len(shared) < len(families) else ""
        found = [names.get(hop, hop) for hop in node.first_hops]
        return plural_list(found, _FIRST_HOPS_SHOWN) + only

    columns = {"Node": "name", "Id": "id", "Area": "area", ">Metric": "metric"}
    paper.table(nodes, {**columns, "~First hops": hops})


DOCUMENT = Document(
    Spf,
    "graph:spf",
    "The shortest-path tree, or the log of computations.\n\n"
    "With NODE (a router's name or id) the paths to it.",
    (Argument("node", word="NODE"), Argument("log", "flag")),
    narrowed=True,
)
