"""The budget of announcements: how good weights stay, the fewer changes of load are announced.

A light model, so that 64 spines and 512 leaves are possible: every router has its real
``AnnounceBudget`` and the rule of ``te.announcer``; loads, announced bandwidths and damped shares
are arrays, flooding takes no time. Jobs of sixteen leaves exchange data all-to-all, each on and off
with its own period and phase, while half of the first spine is taken by other traffic.
``tests/sim/test_announce_budget.py`` runs complete routers.

Worst link: the load of the most loaded link over its capacity while all jobs send, in percent, the
mean of the time recorded. Swing: the largest range of any share, in points.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fared.extensions.sim.load import OnOff
from fared.paths.te.advertise import DEFAULT_ADVERTISE
from fared.paths.te.budget import WINDOW, AnnounceBudget
from fared.paths.weights.adaptation import AdaptationSettings

Floats = NDArray[np.float64]
Row = dict[str, Any]
SIZES = ((4, 8), (16, 64), (64, 512))
PERIODS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 40.0)
JOB = 16
LOAD, TAKEN = 0.5, 0.5
"""Of a leaf's uplinks, by its job while it sends; of the first spine's links, by other traffic."""
SETTLING, SECONDS = 400, 60
POINTS = 2.0
PARTS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""The curve: budgets as parts of what is announced without one."""
DAMPED = AdaptationSettings()


@dataclass
class Job:
    """Leaves that exchange data; shares (sender, receiver, spine) smoothed and programmed."""

    leaves: NDArray[np.int64]
    pattern: OnOff
    phase: float
    smoothed: Floats
    programmed: Floats

    def part(self, at: float) -> float:
        """Return the part of the last second in which it sends."""
        return self.pattern.part(at + self.phase - 1.0, at + self.phase)


@dataclass(frozen=True)
class Quality:
    """What was recorded after settling; ``most``: announcements a second, of any ten seconds."""

    worst: float
    swing: float
    mean: float
    most: float


@dataclass
class Model:
    """A fabric of three stages; arrays of links are (leaf, spine), of capacity 1."""

    spines: int
    leaves: int
    budget: float
    jobs: list[Job] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        shape = self.leaves, self.spines
        self.background = np.zeros(shape)
        self.background[:, 0] = TAKEN
        # up (of leaves) and down (of spines): announced as available, and load averaged
        self.announced = [np.ones(shape), np.ones(shape)]
        self.averaged = [np.zeros(shape), np.zeros(shape)]
        dice = np.random.default_rng(5)
        for first in range(0, self.leaves, JOB):
            leaves = np.arange(first, min(first + JOB, self.leaves))
            shares = np.full((len(leaves), len(leaves), self.spines), 1.0 / self.spines)
            pattern = OnOff(float(dice.choice(PERIODS)), 0.5)
            phase = float(dice.uniform(1.0, 1.0 + pattern.period))
            self.jobs.append(Job(leaves, pattern, phase, shares, shares.copy()))
        ends = [self.spines] * self.leaves + [self.leaves] * self.spines
        self.budgets = [self._budget(own, sum(ends)) for own in ends]

    def _budget(self, own: int, total: int) -> AnnounceBudget:
        budget = AnnounceBudget(self.budget, DEFAULT_ADVERTISE.threshold)
        budget.ends.put("own", own, -WINDOW, own=True)
        budget.ends.put("others", total - own, -WINDOW, own=False)
        return budget

    def loads(self, parts: list[float]) -> list[Floats]:
        """Return the load of links up and down, with these parts of each job."""
        up, down = self.background.copy(), self.background.copy()
        for job, part in zip(self.jobs, parts, strict=True):
            members = len(job.leaves)
            rate = job.programmed * (LOAD * self.spines / (members - 1) * part)
            rate[np.arange(members), np.arange(members)] = 0.0
            up[job.leaves] += rate.sum(axis=1)
            down[job.leaves] += rate.sum(axis=0)
        return [up, down]

    def step(self, now: float) -> float:
        """One second: measure, announce, adapt weights; return the worst link, percent."""
        measured = self.loads([job.part(now) for job in self.jobs])
        for budget in self.budgets:
            budget.advance(now)
        over = np.array([budget.averaging for budget in self.budgets])
        gain = np.where(over > 0, 1.0 - np.exp(-1.0 / np.maximum(over, 1e-9)), 1.0)
        split = gain[: self.leaves, None], gain[None, self.leaves :]
        for way, (load, part) in enumerate(zip(measured, split, strict=True)):
            self.averaged[way] += (np.minimum(load, 1.0) - self.averaged[way]) * part
        number = 0
        for router, budget in enumerate(self.budgets):
            number += self._announce(router, budget)
        self.counts.append(number)
        self._adapt(over[: self.leaves])
        return 100 * max(float(load.max()) for load in self.loads([1.0] * len(self.jobs)))

    def _announce(self, router: int, budget: AnnounceBudget) -> int:
        """Announce what the share permits, the largest changes first; return how many."""
        way, row = (0, router) if router < self.leaves else (1, router - self.leaves)
        announced, averaged = self.announced[way], self.averaged[way]
        if way:
            announced, averaged = announced.T, averaged.T
        change = 1.0 - averaged[row] - announced[row]
        wanted = np.flatnonzero(np.abs(change) > budget.threshold)
        sent = 0
        for end in wanted[np.argsort(-np.abs(change[wanted]), kind="stable")]:
            if not budget.ready:
                break
            budget.spend()
            announced[row, end] = 1.0 - averaged[row, end]
            sent += 1
        budget.waiting = len(wanted) - sent
        return sent

    def _adapt(self, averaging: Floats) -> None:
        """Move shares toward the path capacities announced, as ``weights.adaptation`` does."""
        up, down = (np.maximum(announced, DAMPED.floor) for announced in self.announced)
        tau = np.array([DAMPED.tau * DAMPED.slowed(seconds) for seconds in averaging])
        gain = 1.0 - np.exp(-1.0 / tau)
        for job in self.jobs:
            target = np.minimum(up[job.leaves][:, None], down[job.leaves][None])
            target /= target.sum(axis=2, keepdims=True)
            job.smoothed += (target - job.smoothed) * gain[job.leaves][:, None, None]
            far = np.abs(job.smoothed - job.programmed) > DAMPED.dead_band * job.programmed
            moved = far.any(axis=2)
            job.programmed[moved] = job.smoothed[moved]

    def run(self, settling: int = SETTLING, seconds: int = SECONDS) -> Quality:
        """Settle, then record."""
        worst = []
        for second in range(1, settling + 1):
            self.step(float(second))
        least = [job.programmed.copy() for job in self.jobs]
        most = [job.programmed.copy() for job in self.jobs]
        for second in range(settling + 1, settling + seconds + 1):
            worst.append(self.step(float(second)))
            for job, low, high in zip(self.jobs, least, most, strict=True):
                np.minimum(low, job.programmed, out=low)
                np.maximum(high, job.programmed, out=high)
        swing = max(float((b - a).max()) for a, b in zip(least, most, strict=True))
        width = int(WINDOW)
        sums = np.convolve(self.counts, np.ones(width), "valid") / width
        mean = sum(self.counts[settling:]) / seconds
        return Quality(sum(worst) / seconds, 100 * swing, mean, float(sums.max()))


def sizes(spines: int, leaves: int, default: float) -> list[Row]:
    """The default budget, and the curve from budget to quality."""
    freely = Model(spines, leaves, math.inf).run()
    found: list[Row] = []
    rounded = [float(f"{part * freely.mean:.1g}") for part in PARTS]
    for budget in sorted({default, *(b for b in rounded if b >= 1)}, reverse=True):
        ours = Model(spines, leaves, budget).run()
        name = f"{spines}x{leaves}, budget {budget:g}/s"
        judged = budget == default
        found += [
            row(f"{name}: announcements, mean", ours.mean, freely.mean, "/s",
                f"<= {budget:g}", met=ours.mean <= budget),
            row(f"{name}: announcements, most in 10 s", ours.most, freely.most, "/s",
                f"<= {budget:g}" if judged else None,
                met=ours.most <= budget if judged else None),
            row(f"{name}: worst link", ours.worst, freely.worst, "%",
                f"<= other + {POINTS:g}" if judged else None,
                met=ours.worst <= freely.worst + POINTS if judged else None),
            row(f"{name}: swing", ours.swing, freely.swing, "points",
                f"<= other + {POINTS:g}" if judged else None,
                met=ours.swing <= freely.swing + POINTS if judged else None),
        ]  # fmt: skip
        found[-2].update(curve=[f"{spines}x{leaves}", budget / freely.mean, ours.worst,
                                freely.worst, ours.swing, freely.swing])  # fmt: skip
    return found


def row(
    name: str, ours: float, other: float, unit: str, goal: str | None, *, met: bool | None
) -> Row:
    """One line of the report: with the budget, beside unbounded."""
    return {
        "name": name,
        "ours": ours,
        "other": other,
        "unit": unit,
        "ratio": None,
        "goal": goal,
        "met": met,
    }


def rows() -> list[Row]:
    """All sizes with the default budget of 500 a second, and their curves."""
    return [found for size in SIZES for found in sizes(*size, DEFAULT_ADVERTISE.budget)]


def figures(found: list[Row], directory: Path) -> list[tuple[str, str]]:
    """Draw quality over budget, both relative to announcing without a budget."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(9.0, 3.6), layout="constrained")
    for axes, title, ours, other in zip(
        picture.subplots(1, 2), ("worst link", "swing"), (2, 4), (3, 5), strict=True
    ):
        curves = [entry["curve"] for entry in found if "curve" in entry]
        for size in dict.fromkeys(curve[0] for curve in curves):
            points = sorted((c[1], c[ours] - c[other]) for c in curves if c[0] == size)
            axes.plot(*zip(*points, strict=True), "o-", label=size, markersize=4)
        axes.axhline(POINTS, color="grey", linestyle="--", linewidth=1)
        axes.set_xscale("log")
        axes.set_xlabel("budget, as part of the unbounded announcements")
        axes.set_ylabel(f"{title}, points above unbounded")
    axes.legend()
    picture.savefig(directory / "announcements.png", dpi=110)
    return [("announcements.png", "Quality of weights by the budget of announcements")]


def main() -> int:
    """Print the rows of one size or of all."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sizes", nargs="*", default=[f"{s}x{n}" for s, n in SIZES])
    arguments.add_argument("--budget", type=float, default=DEFAULT_ADVERTISE.budget)
    given = arguments.parse_args()
    for size in given.sizes:
        spines, leaves = map(int, size.split("x"))
        for found in sizes(spines, leaves, given.budget):
            verdict = {None: "", True: "met", False: "MISSED"}[found["met"]]
            print(
                f"{found['name']}: {found['ours']:.4g} | {found['other']:.4g} {found['unit']}",
                f"[{found['goal'] or 'no goal'}] {verdict}",
                flush=True,
            )
    return 0
