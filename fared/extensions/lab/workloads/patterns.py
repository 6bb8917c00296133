"""What training and inference send besides collectives, as graphs of tasks; pure.

``send`` and ``pipeline`` are point to point, ``experts`` is an uneven all-to-all and back,
``checkpoint`` is the incast of storage, ``kv_cache`` goes from hosts that read a prompt to hosts
that answer it, and ``requests`` come from outside, whether or not others are answered already.
``busy_phases`` is a job with several busy phases in an iteration, as CASSINI describes jobs.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from fared.extensions.lab.workloads.collectives import COLLECTIVES, Send, all_to_all
from fared.extensions.lab.workloads.collectives import Step as Sends
from fared.extensions.lab.workloads.graph import GraphBuilder, GraphTask, TaskGraph
from fared.extensions.lab.workloads.sizes import combine, dispatch, equal, shares, split, whole
from fared.extensions.lab.workloads.step import PIPELINE, TrainingStep

DISPATCH, COMBINE = "dispatch", "combine"
REQUEST, ANSWER = "request", "answer"


def send(ranks: int, message: int) -> TaskGraph:
    """Each even rank sends the message to the next rank, all at once."""
    pairs = tuple(Send(rank, rank + 1, (0,)) for rank in range(0, ranks - 1, 2))
    return _together("send", ranks, pairs, message)


def pipeline(
    ranks: int, message: int, micro_batches: int, passes: str, compute: float
) -> TaskGraph:
    """Activations of ``message`` bytes go down a chain of ranks, gradients come back."""
    moved = 2 * (ranks - 1) * micro_batches * message
    step = TrainingStep(
        pipeline=ranks,
        micro_batches=micro_batches,
        passes=passes,
        compute=compute,
        traffic={PIPELINE: moved},
    )
    return step.graph()


def experts(ranks: int, message: int, skew: float, compute: float) -> TaskGraph:
    """Each rank sends tokens, ``message`` bytes, to the experts of all ranks, and gets answers.

    The expert of rank 0 gets ``skew`` times the mean; a rank keeps the tokens of its own expert.
    Raises ValueError if the skew is too large.
    """
    parts, builder = split(message, shares(ranks, skew)), GraphBuilder()
    schedule, members = all_to_all(ranks), range(ranks)
    builder.collective(DISPATCH, DISPATCH, members, schedule, dispatch(parts))
    builder.compute(members, compute)
    builder.collective(COMBINE, COMBINE, members, schedule, combine(parts))
    return builder.graph()


def uneven_all_to_all(ranks: int, message: int, skew: float) -> TaskGraph:
    """Each rank sends every other one its part of a message; rank 0 gets ``skew`` times the mean.

    Raises ValueError if the skew is too large.
    """
    parts, builder = split(message, shares(ranks, skew)), GraphBuilder()
    schedule = all_to_all(ranks)
    builder.collective("all-to-all", "", range(ranks), schedule, dispatch(parts))
    return builder.graph()


def checkpoint(ranks: int, storage: int, message: int) -> TaskGraph:
    """Each rank writes its part of a checkpoint, ``message`` bytes, to the last ``storage`` ranks.

    It divides its part equally between them.
    """
    writers = ranks - storage
    stores = tuple(
        Send(rank, writers + part, (part,)) for rank in range(writers) for part in range(storage)
    )
    parts = split(message, [1 / storage] * storage)
    sizes = tuple(parts[one.target - writers] for one in stores)
    task = GraphTask("checkpoint", tuple(range(ranks)), stores, sizes, buffer="checkpoint")
    return TaskGraph((task,))


def kv_cache(ranks: int, decoders: int, message: int, layers: int) -> TaskGraph:
    """Each rank that reads prompts sends the cache of one, ``message`` bytes, to a decoding rank.

    The last ``decoders`` ranks decode; they are dealt to the others in turn. A cache goes layer by
    layer, each as soon as the one before it has arrived.
    """
    readers, builder = ranks - decoders, GraphBuilder()
    each = split(message, [1 / layers] * layers)
    for rank in range(readers):
        for layer, size in enumerate(each):
            target = readers + rank % decoders
            name = f"cache of rank {rank}, layer {layer}"
            task = builder.send("kv-cache", name, rank, target, size)
            builder.await_task(rank, task)
    return builder.graph()


def requests(
    ranks: int,
    servers: int,
    *,
    count: int,
    rate: float,
    request: int,
    answer: int,
    compute: float,
    sticky: bool,
    seed: int,
) -> TaskGraph:
    """Requests of clients to the last ``servers`` ranks, and answers, as a Poisson process.

    ``rate`` is requests a second, of all clients; a server answers after ``compute`` seconds. A
    request goes to any server, or with ``sticky`` to the one of its client, where its context is.
    """
    clients, drawn = ranks - servers, random.Random(seed)
    tasks: list[GraphTask] = []
    at = 0.0
    for number in range(count):
        at += drawn.expovariate(rate)
        client = drawn.randrange(clients)
        server = clients + (client % servers if sticky else drawn.randrange(servers))
        first, name = len(tasks), f"request {number}"
        there, back = (Send(0, 1, (0,)),), (Send(1, 0, (1,)),)
        members = (client, server)
        tasks.append(GraphTask(REQUEST, members, there, (request,), (), at, name))
        tasks.append(GraphTask(ANSWER, members, back, (answer,), (first,), compute, name))
    return TaskGraph(tuple(tasks), tuple((2 * number, 2 * number + 1) for number in range(count)))


def busy_phases(
    collective: str, ranks: int, phases: Sequence[tuple[int, float]]
) -> tuple[TaskGraph, float]:
    """Return a job that communicates several times in an iteration, and what it computes last.

    Each phase is a collective of so many bytes, and the seconds to compute behind it.
    """
    builder, members = GraphBuilder(), range(ranks)
    last = 0.0
    for number, (size, seconds) in enumerate(phases, 1):
        builder.compute(members, last)
        name = f"phase {number}"
        builder.collective(name, name, members, COLLECTIVES[collective](ranks), equal(ranks, size))
        last = seconds
    return builder.graph(), last


def _together(name: str, ranks: int, sends: Sends, message: int) -> TaskGraph:
    sizes = whole(message)
    each = tuple(sizes(one) for one in sends)
    return TaskGraph((GraphTask(name, tuple(range(ranks)), sends, each, buffer=name),))
