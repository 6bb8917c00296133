"""The file of a model: its parallelisms, and what they send in a training step; YAML.

``containerlab/gpt-3b.model.yml`` has all keys, with comments.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import structs

from fared.config.errors import ConfigErrors
from fared.config.load import load_section
from fared.config.quantities import Duration
from fared.config.reading import Refused
from fared.config.section import Section
from fared.config.values import whole, written
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.workloads.sizes import format_bytes, parse_size
from fared.extensions.lab.workloads.step import AXES, TrainingStep

MOST = 1024
"""Ranks along an axis, experts, layers, micro-batches."""


def _number(low: float) -> object:
    def read(value: str | float) -> float:
        if float(value) < low:
            raise ValueError
        return float(value)

    return written(f"a number of at least {low:g}", read, {"type": "number", "minimum": low})


def _scale(value: str | float) -> float:
    if not 0 < float(value) <= 1:
        raise ValueError
    return float(value)


Count = Annotated[int, whole(1, MOST)]
Size = Annotated[
    int,
    written(
        "bytes such as 85G or 64KiB",
        lambda value: parse_size(str(value)),
        {"type": ["string", "number"]},
        format_bytes,
    ),
]


class Parallelism(Section, frozen=True):
    """The number of ranks along each axis."""

    data: Count = 1
    tensor: Count = 1
    pipeline: Count = 1


class StepTraffic(Section, frozen=True):
    """Bytes that all ranks send together in a step."""

    tensor: Size = 0
    pipeline: Size = 0
    data: Size = 0
    expert: Size = 0


class Model(Section, frozen=True):
    """The whole file."""

    parallelism: Parallelism = Parallelism()
    order: tuple[Literal["tensor", "data", "pipeline"], ...] = AXES  # type: ignore[assignment]
    layers: Count = 1
    micro_batches: Count = 1
    schedule: Literal["1f1b", "gpipe"] = "1f1b"
    experts: Annotated[int, whole(0, MOST)] = 0
    skew: Annotated[float, _number(1.0)] = 1.0
    traffic: StepTraffic = StepTraffic()
    scale: Annotated[float, written("a number above 0, at most 1", _scale, {"type": "number"})] = (
        1.0
    )
    compute: Duration = 0.0

    def check(self) -> None:
        """Refuse what cannot be mapped on ranks."""
        if sorted(self.order) != sorted(AXES):
            raise Refused(f"each of {', '.join(AXES)} once", field="order")
        if self.layers % self.parallelism.pipeline:
            stages = f"a multiple of parallelism.pipeline ({self.parallelism.pipeline})"
            raise Refused(stages, field="layers")
        try:
            self.step().check()
        except ValueError as error:
            raise Refused("parallelisms that go together", str(error), "experts") from error

    def step(self) -> TrainingStep:
        """Return the step that it describes."""
        ranks, traffic = self.parallelism, self.traffic
        return TrainingStep(
            data=ranks.data,
            tensor=ranks.tensor,
            pipeline=ranks.pipeline,
            experts=self.experts,
            layers=self.layers // ranks.pipeline,
            micro_batches=self.micro_batches,
            passes=self.schedule,
            order=self.order,
            traffic={
                name: getattr(traffic, name) * self.scale
                for name in ("tensor", "pipeline", "expert", "data")
            },
            skew=self.skew,
            compute=self.compute,
        )


def changed(model: Model, axes: Mapping[str, int | None], fields: Mapping[str, Any]) -> Model:
    """Return a model with other values where they are given. Raises LabError."""
    ranks = structs.replace(model.parallelism, **_given(axes))
    new = structs.replace(model, parallelism=ranks, **_given(fields))
    try:
        new.check()
    except Refused as refused:
        why = f" ({refused.hint})" if refused.hint else ""
        raise LabError(f"{refused.field}: expected {refused.expected}{why}") from refused
    return new


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def load(path: Path) -> Model:
    """Read a model. Raises LabError, which lists every fault with its line."""
    try:
        return load_section(Model, path)
    except ConfigErrors as errors:
        raise LabError(str(errors)) from errors
