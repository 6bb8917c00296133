"""What each failure does to traffic: the busiest link then, and what no longer arrives.

The rates between routers are given, from a file or as a collective of hosts; they follow fared's
weights (``routes``), which are computed anew for each failure. A phase of a collective ends with
its slowest link, so its time grows as the utilization of the busiest one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fared.core.units import parse_bandwidth
from fared.extensions.offline.plan.fabric import PlanError, PlanFabric
from fared.extensions.offline.plan.paths import edge_changes, without_edges
from fared.extensions.offline.plan.routes import Demands, WeightedRoutes
from fared.extensions.offline.plan.sets import Failures
from fared.paths.ted.graph import Graph

COLLECTIVES = ("ring", "all-to-all")
_MOST = 1_000_000


class TrafficOutcome(msgspec.Struct, frozen=True, eq=False):
    """What K failures do to traffic.

    ``utilization`` (K,) is the load of the busiest link direction by its capacity, ``busiest``
    (K, 2) its two nodes, ``unserved`` (K,) the bytes/s that have no path. Rates from and to failed
    routers do not count.
    """

    utilization: NDArray[np.float64]
    busiest: NDArray[np.int64]
    unserved: NDArray[np.float64]


class _RawDemand(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    source: Annotated[str, Field(alias="from", min_length=1)]
    target: Annotated[str, Field(alias="to", min_length=1)]
    rate: str | float


class _RawDemands(BaseModel):
    model_config = ConfigDict(extra="forbid")

    demands: Annotated[list[_RawDemand], Field(min_length=1, max_length=_MOST)]


def read_demands(text: str, names: Sequence[str]) -> Demands:
    """Read rates from YAML: ``demands: [{from: L1, to: L2, rate: 100G}]``. Raises PlanError."""
    try:
        raw = _RawDemands.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise PlanError(f"not YAML: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "file"
        raise PlanError(f"{place}: {first['msg']}") from error
    index = {name: node for node, name in enumerate(names)}
    found: dict[tuple[int, int], float] = {}
    for at, one in enumerate(raw.demands):
        try:
            rate = parse_bandwidth(one.rate)
        except ValueError as error:
            raise PlanError(f"demands.{at}.rate: {error}") from error
        pair = _node(index, one.source), _node(index, one.target)
        found[pair] = found.get(pair, 0.0) + rate
    return found


def collective(kind: str, hosts: Sequence[str], rate: float, names: Sequence[str]) -> Demands:
    """Return the rates of a collective in which each host sends ``rate``, bytes/s.

    ``ring``: all of it to the next host; ``all-to-all``: the same part to every other one. Raises
    PlanError.
    """
    index = {name: node for node, name in enumerate(names)}
    nodes = [_node(index, host) for host in hosts]
    if len(nodes) < 2 or len(set(nodes)) < len(nodes):
        raise PlanError("a collective needs two hosts or more, each of them once")
    if kind == "ring":
        return dict.fromkeys(zip(nodes, nodes[1:] + nodes[:1], strict=True), rate)
    part = rate / (len(nodes) - 1)
    return {(a, b): part for a in nodes for b in nodes if a != b}


def _node(index: Mapping[str, int], name: str) -> int:
    if name not in index:
        raise PlanError(f"no router {name!r} in the database")
    return index[name]


class CarriedTraffic(msgspec.Struct, frozen=True, eq=False):
    """Traffic without failures: all rates, bytes/s, those without a path, and loads (E,)."""

    demands: int
    rate: float
    unserved: float
    loads: NDArray[np.float64]
    graph: Graph
    capacity: NDArray[np.float64]

    @property
    def utilization(self) -> NDArray[np.float64]:
        """The load of each edge by its capacity (E,)."""
        return self.loads / self.capacity


def carried(fabric: PlanFabric, demands: Demands) -> CarriedTraffic:
    """Route the traffic on the healthy network; return link loads and what is not delivered."""
    routes = WeightedRoutes(fabric)
    return CarriedTraffic(
        demands=len(demands),
        rate=sum(demands.values()),
        unserved=_unserved(routes, demands),
        loads=routes.loads(demands),
        graph=fabric.graph,
        capacity=fabric.capacity,
    )


def traffic_after(
    fabric: PlanFabric, failures: Failures, first: int, last: int, demands: Demands
) -> TrafficOutcome:
    """Compute what failures ``first`` to ``last - 1`` do to traffic: a pure function."""
    if not demands:
        return _outcome([])
    changes = edge_changes(fabric, failures, first, last)
    rows = []
    for at in range(last - first):
        mine = slice(*changes.failure.searchsorted((at, at + 1)).tolist())
        capacity = fabric.capacity.copy()
        capacity[changes.edge[mine]] = changes.capacity[mine]
        graph, left = without_edges(fabric.graph, capacity)
        after = msgspec.structs.replace(fabric, graph=graph, capacity=left)
        low, high = failures.node_start[first + at : first + at + 2].tolist()
        dead = set(failures.nodes[low:high].tolist())
        alive = {pair: rate for pair, rate in demands.items() if dead.isdisjoint(pair)}
        rows.append(_busiest(after, alive))
    return _outcome(rows)


_Busiest = tuple[float, tuple[int, int], float]


def _busiest(fabric: PlanFabric, demands: Demands) -> _Busiest:
    routes = WeightedRoutes(fabric)
    loads = routes.loads(demands)
    graph = fabric.graph
    lost = _unserved(routes, demands)
    if not loads.any():
        return 0.0, (0, 0), lost
    used = loads / fabric.capacity
    at = int(used.argmax())
    return float(used[at]), (int(graph.src[at]), int(graph.dst[at])), lost


def _unserved(routes: WeightedRoutes, demands: Demands) -> float:
    return sum((rate for pair, rate in demands.items() if not routes.splits(*pair)), 0.0)


def _outcome(rows: Iterable[_Busiest]) -> TrafficOutcome:
    known = list(rows)
    return TrafficOutcome(
        np.array([row[0] for row in known], np.float64),
        np.array([row[1] for row in known], np.int64).reshape(-1, 2),
        np.array([row[2] for row in known], np.float64),
    )
