"""A training step over data, tensor, pipeline and expert parallelism, as a graph of tasks; pure.

The parallelisms are those of draft-aft-ai-traffic-00 §3.2, combined as in §4.1:

- tensor: the ranks of a stage reduce what each has computed of a layer, twice a layer in the
  forward pass and twice in the backward pass of each micro-batch (Megatron-LM, Shoeybi et al.);
- expert: before the second of these, tokens go to their experts and come back, two uneven
  all-to-alls; in the backward pass their gradients take the same ways;
- pipeline: activations of a micro-batch go to the next stage, gradients to the one before;
- data: the replicas reduce the gradients of a stage, once its last micro-batch has passed.

A rank does one thing after another, but it computes and reduces while activations and gradients
travel, so that chains of the pipeline overlap. A stage takes its micro-batches in the order of
``PASSES``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from fared.extensions.lab.workloads.collectives import all_reduce_ring, all_to_all
from fared.extensions.lab.workloads.graph import GraphBuilder, TaskGraph
from fared.extensions.lab.workloads.sizes import combine, dispatch, equal, shares, split

TENSOR, PIPELINE, DATA, EXPERT = "tensor", "pipeline", "data", "expert"
AXES = (TENSOR, DATA, PIPELINE)
"""The axes of ranks, in the default order: neighbors in the first are neighbors in rank."""
PARALLELISMS = (TENSOR, PIPELINE, EXPERT, DATA)
FORWARD, BACKWARD = "forward", "backward"
BACKWARD_TIME = 2
"""A backward pass takes so many times as long as a forward pass: it has two products a layer."""
MOST_TASKS = 100_000
"""Of a step: beyond that a lab would only measure itself."""
_REDUCES = 2
"""All-reduces of a layer in each pass."""

Pass = tuple[str, int]
"""A direction and a micro-batch."""


def gpipe(stage: int, stages: int, micro_batches: int) -> list[Pass]:
    """Return the passes of a stage: all forward passes, then all backward (GPipe)."""
    _ = stage, stages
    return [(way, number) for way in (FORWARD, BACKWARD) for number in range(micro_batches)]


def one_forward_one_backward(stage: int, stages: int, micro_batches: int) -> list[Pass]:
    """Return the passes of a stage: one forward, one backward in turn (1F1B of PipeDream-Flush).

    It begins with one forward pass for each stage behind it, so that a stage holds the activations
    of at most ``stages - stage`` micro-batches.
    """
    early = min(micro_batches, stages - 1 - stage)
    passes: list[Pass] = [(FORWARD, number) for number in range(early)]
    for number in range(micro_batches):
        if number + early < micro_batches:
            passes.append((FORWARD, number + early))
        passes.append((BACKWARD, number))
    return passes


PASSES: Mapping[str, Callable[[int, int, int], list[Pass]]] = MappingProxyType(
    {"1f1b": one_forward_one_backward, "gpipe": gpipe}
)
"""By name: the passes of a stage, given its number, the number of stages and of micro-batches."""


@dataclass(frozen=True)
class TrainingStep:
    """Parallelisms and the bytes that each sends in one step, of all ranks together.

    ``layers``: of each stage. ``experts`` 0: none; otherwise the ranks of a stage, over all its
    replicas, hold them in groups of so many ranks, or of all if there are more experts. ``compute``
    is the time of a forward pass of a stage, seconds.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    experts: int = 0
    layers: int = 1
    micro_batches: int = 1
    passes: str = "1f1b"
    order: tuple[str, ...] = AXES
    traffic: Mapping[str, float] = field(default_factory=dict)
    skew: float = 1.0
    compute: float = 0.0

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.data * self.tensor * self.pipeline

    @property
    def group(self) -> int:
        """The number of ranks that hold the experts of a layer."""
        return min(self.experts, self.data * self.tensor)

    def check(self) -> None:
        """Raise ValueError if the parallelisms do not go together."""
        stage = self.data * self.tensor
        if self.experts and (stage % self.group or self.experts % self.group):
            raise ValueError(f"{self.experts} experts do not divide {stage} ranks of a stage")
        if self.experts:
            shares(self.experts, self.skew)
        tasks = sum(count * max(1, factor) for count, factor in self._counts().values())
        if tasks > MOST_TASKS:
            raise ValueError(f"{tasks:,} messages are more than {MOST_TASKS:,}")

    def rank(self, data: int, tensor: int, pipeline: int) -> int:
        """Return the rank at a place: the first axis of ``order`` counts fastest."""
        places = {DATA: data, TENSOR: tensor, PIPELINE: pipeline}
        sizes = {DATA: self.data, TENSOR: self.tensor, PIPELINE: self.pipeline}
        rank = 0
        for axis in reversed(self.order):
            rank = rank * sizes[axis] + places[axis]
        return rank

    def messages(self) -> dict[str, int]:
        """Return the bytes of a message of each parallelism that sends anything.

        They are the array of an all-reduce, the activations of a micro-batch, and the tokens of a
        rank that go to experts.
        """
        found = {}
        for name, (count, factor) in self._counts().items():
            if count * factor and self.traffic.get(name):
                found[name] = max(1, round(self.traffic[name] / (count * factor)))
        return found

    def _counts(self) -> dict[str, tuple[int, int]]:
        """Return the number of messages, and how many times the bytes of each are sent."""
        passes = 2 * self.micro_batches
        layers = passes * self.layers * self.pipeline
        groups = self.data * self.tensor // self.group if self.experts else 0
        return {
            TENSOR: (layers * _REDUCES * self.data, 2 * (self.tensor - 1)),
            PIPELINE: (passes * (self.pipeline - 1) * self.data * self.tensor, 1),
            EXPERT: (layers * groups, 2 * (self.group - 1)),
            DATA: (self.tensor * self.pipeline, 2 * (self.data - 1)),
        }

    def graph(self) -> TaskGraph:
        """Return the tasks of one step. Raises ValueError as ``check``."""
        self.check()
        return _Builder(self).graph()


class _Builder:
    def __init__(self, step: TrainingStep) -> None:
        self._step = step
        self._messages = step.messages()
        self._tasks = GraphBuilder()
        self._arriving: dict[tuple[str, int, int], int] = {}
        """The task that brings a rank what it needs for a pass: direction, micro-batch, rank."""

    def graph(self) -> TaskGraph:
        for stage, (way, number) in self._order():
            self._pass(stage, way, number)
        for stage, tensor in itertools.product(range(self._step.pipeline), self._tensors()):
            members = [self._step.rank(data, tensor, stage) for data in range(self._step.data)]
            self._reduce(DATA, f"gradients of stage {stage}, part {tensor}", members)
        return self._tasks.graph()

    def _order(self) -> Iterator[tuple[int, Pass]]:
        """Yield the passes of all stages, each behind those that it needs."""
        step = self._step
        stages = range(step.pipeline)
        left = {
            stage: PASSES[step.passes](stage, step.pipeline, step.micro_batches)[::-1]
            for stage in stages
        }
        done: set[tuple[int, Pass]] = set()
        while any(left.values()):
            for stage in stages:
                while left[stage] and self._needs(stage, left[stage][-1]) <= done:
                    done.add((stage, left[stage][-1]))
                    yield stage, left[stage].pop()

    def _needs(self, stage: int, one: Pass) -> set[tuple[int, Pass]]:
        before = stage - 1 if one[0] == FORWARD else stage + 1
        return {(before, one)} if 0 <= before < self._step.pipeline else set()

    def _pass(self, stage: int, way: str, number: int) -> None:
        """A micro-batch passes a stage, in all replicas, and goes on to the next one."""
        members = self._stage(stage)
        for rank in members:
            if (way, number, rank) in self._arriving:
                self._tasks.await_task(rank, self._arriving[way, number, rank])
        compute = self._step.compute * (BACKWARD_TIME if way == BACKWARD else 1)
        for layer in range(self._step.layers):
            self._tasks.compute(members, compute / self._step.layers)
            self._layer(stage, f"{way} {number}, layer {layer} of stage {stage}")
        following = stage + 1 if way == FORWARD else stage - 1
        if 0 <= following < self._step.pipeline:
            size = self._messages.get(PIPELINE, 1)  # a byte at least: the next stage waits for it
            for source, target in zip(members, self._stage(following), strict=True):
                name = f"{way} {number}, {source} to {target}"
                task = self._tasks.send(PIPELINE, name, source, target, size)
                self._arriving[way, number, target] = task

    def _layer(self, stage: int, name: str) -> None:
        self._tensor(stage, f"{name}, attention")
        members = self._stage(stage)
        for at in (
            range(0, len(members), max(1, self._step.group)) if EXPERT in self._messages else ()
        ):
            self._experts(f"{name}, experts", members[at : at + self._step.group])
        self._tensor(stage, f"{name}, MLP")

    def _tensor(self, stage: int, name: str) -> None:
        for data in range(self._step.data):
            members = [self._step.rank(data, tensor, stage) for tensor in self._tensors()]
            self._reduce(TENSOR, f"{name}, replica {data}", members)

    def _experts(self, name: str, members: Sequence[int]) -> None:
        """Tokens go to their experts and come back; expert e is at member e mod their number."""
        each = split(self._messages[EXPERT], shares(self._step.experts, self._step.skew))
        parts = [sum(each[at :: len(members)]) for at in range(len(members))]
        schedule = all_to_all(len(members))
        for way, sizes in (("to", dispatch(parts)), ("from", combine(parts))):
            self._tasks.collective(EXPERT, f"{name}, {way}", members, schedule, sizes)

    def _reduce(self, phase: str, buffer: str, members: Sequence[int]) -> None:
        if phase in self._messages:
            sizes = equal(len(members), self._messages[phase])
            self._tasks.collective(phase, buffer, members, all_reduce_ring(len(members)), sizes)

    def _stage(self, stage: int) -> list[int]:
        replicas = itertools.product(range(self._step.data), self._tensors())
        return sorted(self._step.rank(data, tensor, stage) for data, tensor in replicas)

    def _tensors(self) -> range:
        return range(self._step.tensor)
