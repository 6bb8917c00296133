"""The pattern of a job from the measured load of a link: period, time on, and rate.

A job that alternates between computing and communicating raises the load of its links in steps.
The samples are divided at half of their range; the period is the median time from one rise to the
next, where that repeats.
"""

from __future__ import annotations

import msgspec
import numpy as np

from fared.core.json_text import decode_json
from fared.management.documents.load import Load

_LEAST_PERIODS = 3
_LEAST_SAMPLES = 4
"""Samples of a period, on average."""
_SPREAD = 0.25
"""Half of the periods differ from the median by at most this part of it."""


class MeasureError(ValueError):
    """The load does not tell a period; the text says why."""


class MeasuredJob(msgspec.Struct, frozen=True):
    """Seconds, and bytes/s while the job communicates."""

    period: float
    busy: float
    bandwidth: float


def measured_job(text: str, interface: str) -> MeasuredJob:
    """Read the output of ``show load --json`` and find the job of an interface.

    Raises MeasureError.
    """
    try:
        document = decode_json(text, Load)
    except ValueError:
        raise MeasureError("not the output of 'show load --json'") from None
    known = {entry.interface: entry for entry in document.interfaces}
    if interface not in known:
        names = ", ".join(known) or "none"
        raise MeasureError(f"no load of {interface!r}; interfaces: {names}")
    entry = known[interface]
    return pattern_of(np.negative(entry.ages).tolist(), entry.loads)


def pattern_of(times: list[float], loads: list[float]) -> MeasuredJob:
    """Find the pattern of samples, oldest first. Raises MeasureError."""
    at, load = np.array(times), np.array(loads)
    if len(at) < _LEAST_SAMPLES * _LEAST_PERIODS:
        raise MeasureError(f"{len(at)} samples are too few")
    low, high = np.quantile(load, (0.05, 0.95))
    on = load > (low + high) / 2
    rises = np.flatnonzero(on[1:] & ~on[:-1]) + 1
    if high < 2 * low or len(rises) <= _LEAST_PERIODS:
        raise MeasureError("the load does not rise and fall often enough")
    periods = np.diff(at[rises])
    period = float(np.median(periods))
    samples = (rises[-1] - rises[0]) / len(periods)
    if samples < _LEAST_SAMPLES:
        raise MeasureError(
            f"a period of {period:.3g} s has {samples:.1f} samples only: lower measure-period"
        )
    if float(np.median(np.abs(periods - period))) > _SPREAD * period:
        raise MeasureError("the load rises and falls, but not periodically")
    turns = slice(int(rises[0]), int(rises[-1]))
    whole = load[turns]
    # A sample is the mean since the one before, so those at the edges of a turn are lower.
    rate = float(np.quantile(whole[on[turns]], 0.75))
    rest = float(np.median(whole[~on[turns]]))
    part = (float(whole.mean()) - rest) / (rate - rest)
    return MeasuredJob(period, min(max(part, 0.0), 1.0) * period, rate)
