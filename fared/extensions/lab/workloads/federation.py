"""A round of federated learning between sites, as a graph of tasks; pure.

Each rank has trained a model on data of its own; after the round each has the sum of all models.
The modes are those of draft-aft-ai-traffic §3.4, Figure 3: what crosses the links between sites,
and how often, differs. A phase begins when the one before it has ended everywhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from fared.extensions.lab.workloads.collectives import (
    Schedule,
    Send,
    all_gather,
    all_reduce_server,
)
from fared.extensions.lab.workloads.graph import GraphBuilder, TaskGraph
from fared.extensions.lab.workloads.sizes import whole

CENTRALIZED, SEMI, MESH, RING = "centralized", "semi", "mesh", "ring"
COLLECT, EXCHANGE, DISTRIBUTE = "collect", "exchange", "distribute"
Phases = Iterator[tuple[str, Schedule]]
_MODEL = (0,)


def federated(mode: str, sites: Sequence[int], message: int) -> TaskGraph:
    """Return a round in which each rank has a model of ``message`` bytes.

    ``sites`` are numbers of ranks, which count through the sites. The first rank leads its site,
    the first one of all is the server. Raises ValueError for fewer than two sites.
    """
    if len(sites) < 2:
        raise ValueError("a federation has at least two sites")
    ends = [0, *itertools.accumulate(sites)]
    members = [range(begin, end) for begin, end in itertools.pairwise(ends)]
    builder = GraphBuilder()
    for phase, schedule in MODES[mode](members):
        builder.collective(phase, "model", range(ends[-1]), schedule, whole(message))
    return builder.graph()


def _centralized(sites: Sequence[range]) -> Phases:
    """All send their models to one server, which returns the sum."""
    collect, distribute = all_reduce_server(sites[-1].stop)
    yield COLLECT, (_models(collect),)
    yield DISTRIBUTE, (_models(distribute),)


def _semi(sites: Sequence[range]) -> Phases:
    """Leaders sum the models of their sites, exchange the sums, and return the sum of all."""
    inside = [(site[0], rank) for site in sites for rank in site[1:]]
    leaders = itertools.permutations((site[0] for site in sites), 2)
    if inside:
        yield COLLECT, (tuple(Send(rank, leader, _MODEL, adds=True) for leader, rank in inside),)
    yield EXCHANGE, (tuple(Send(one, other, _MODEL, adds=True) for one, other in leaders),)
    if inside:
        yield DISTRIBUTE, (tuple(Send(leader, rank, _MODEL) for leader, rank in inside),)


def _mesh(sites: Sequence[range]) -> Phases:
    """Each sends its model to all others: nobody leads."""
    pairs = itertools.permutations(range(sites[-1].stop), 2)
    yield EXCHANGE, (tuple(Send(one, other, _MODEL, adds=True) for one, other in pairs),)


def _ring(sites: Sequence[range]) -> Phases:
    """Models are passed on from rank to rank: a link between sites carries one at a time."""
    yield EXCHANGE, all_gather(sites[-1].stop)


def _models(step: Sequence[Send]) -> tuple[Send, ...]:
    """The sends of a step, of a whole model each."""
    return tuple(Send(one.source, one.target, _MODEL, one.adds) for one in step)


MODES: Mapping[str, Callable[[Sequence[range]], Phases]] = MappingProxyType(
    {CENTRALIZED: _centralized, SEMI: _semi, MESH: _mesh, RING: _ring}
)
"""By name: who sends to whom, in each phase. The last two are fully decentralized."""
