"""Reading jobs from YAML.

An example::

    links: {up: 100G}            # only without a database
    jobs:
      - name: a
        period: 200ms            # of an iteration
        busy: 80ms               # it communicates first, then computes; or duty: 40%
        bandwidth: 100G          # that each host sends meanwhile
        hosts: [L1, L2, L5]      # a ring over these routers; or links: {up: 100G}
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fared.core.units import parse_bandwidth, parse_duration, parse_percent
from fared.extensions.offline.plan.jobs.circle import JobPattern
from fared.extensions.offline.plan.jobs.measured import MeasuredJob

_MOST_JOBS = 64
Name = Annotated[str, Field(min_length=1, max_length=64)]


class JobFileError(ValueError):
    """The file is not a list of jobs; the text names the place."""


class _RawModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _RawJob(_RawModel):
    name: Name
    period: str | float | None = None
    busy: str | float | None = None
    duty: str | None = None
    bandwidth: str | float | None = None
    hosts: list[Name] = []
    links: dict[Name, str | float] = {}


class _RawJobFile(_RawModel):
    links: dict[Name, str | float] = {}
    jobs: Annotated[list[_RawJob], Field(min_length=1, max_length=_MOST_JOBS)]


class PlannedJob(BaseModel):
    """A job: seconds and bytes/s. ``hosts`` form a ring; ``links`` are rates by name of a link."""

    name: str
    period: float
    busy: float
    bandwidth: float
    hosts: list[str]
    links: dict[str, float]

    def pattern(self, tick: float) -> JobPattern:
        """Return the job in ticks (seconds). Raises JobFileError if a tick is too long."""
        period, busy = round(self.period / tick), round(self.busy / tick)
        if period < 1 or abs(period * tick - self.period) > self.period * 0.01:
            raise JobFileError(f"{self.name}: the period is no multiple of the tick")
        return JobPattern(self.name, period, min(max(busy, 1), period))


class JobFile(BaseModel):
    """All jobs, and the capacities of links by name, bytes/s."""

    jobs: list[PlannedJob]
    links: dict[str, float]


def read_jobs(text: str, measured: Mapping[str, MeasuredJob] = MappingProxyType({})) -> JobFile:
    """Read a file of jobs. Raises JobFileError.

    A job that was ``measured`` has its period, its time and its rate from there, by name.
    """
    try:
        found: Any = yaml.safe_load(text)
        raw = _RawJobFile.model_validate(found)
    except yaml.YAMLError as error:
        raise JobFileError(f"not YAML: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "file"
        raise JobFileError(f"{place}: {first['msg']}") from error
    names = [job.name for job in raw.jobs]
    for name in names:
        if names.count(name) > 1:
            raise JobFileError(f"two jobs are named {name}")
    for name in measured.keys() - set(names):
        raise JobFileError(f"no job is named {name}")
    jobs = [_planned(_with(job, measured.get(job.name))) for job in raw.jobs]
    links = {name: _value(name, parse_bandwidth, rate) for name, rate in raw.links.items()}
    for planned in jobs:
        for link in planned.links:
            if link not in links:
                raise JobFileError(f"{planned.name}: no link {link!r} under links")
    return JobFile(jobs=jobs, links=links)


def _with(job: _RawJob, measured: MeasuredJob | None) -> _RawJob:
    if measured is None:
        return job
    if (job.period, job.busy, job.duty, job.bandwidth) != (None,) * 4 or job.links:
        raise JobFileError(f"{job.name}: a measured job has hosts only")
    return job.model_copy(
        update={
            "period": f"{measured.period}s",
            "busy": f"{measured.busy}s",
            "bandwidth": measured.bandwidth * 8,
        }
    )


def _planned(job: _RawJob) -> PlannedJob:
    if job.period is None:
        raise JobFileError(f"{job.name}: no period, and it is not measured (--from-load)")
    period = _value(f"{job.name}.period", parse_duration, job.period)
    if (job.busy is None) == (job.duty is None):
        raise JobFileError(f"{job.name}: give either busy or duty")
    if job.busy is not None:
        busy = _value(f"{job.name}.busy", parse_duration, job.busy)
    else:
        busy = period * _value(f"{job.name}.duty", parse_percent, job.duty)
    if not 0.0 < busy <= period:
        raise JobFileError(f"{job.name}: it communicates for more than 0 and at most its period")
    if bool(job.hosts) == bool(job.links):
        raise JobFileError(f"{job.name}: give either hosts or links")
    if job.hosts and (len(set(job.hosts)) < 2 or job.bandwidth is None):
        raise JobFileError(f"{job.name}: two hosts or more, and bandwidth")
    rate = 0.0 if job.bandwidth is None else _value(job.name, parse_bandwidth, job.bandwidth)
    links = {name: _value(job.name, parse_bandwidth, value) for name, value in job.links.items()}
    return PlannedJob(
        name=job.name, period=period, busy=busy, bandwidth=rate, hosts=job.hosts, links=links
    )


def _value(place: str, parse: Any, raw: object) -> float:  # noqa: ANN401 - a parser of core.units
    try:
        return float(parse(raw))
    except ValueError as error:
        raise JobFileError(f"{place}: {error}") from error
