"""Another tenant: its traffic takes most of a spine's downlink, and weights follow what is left.

Weights are by available bandwidth (``adaptive: metric: available``), with a short time constant.
The tenant sends at a fixed rate through one spine, whatever others do. Shares of flows are counted
before, while it sends, and after, beside the arithmetic.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from rich import box
from rich.table import Table

from fared.core.units import BytesPerSecond, format_bandwidth
from fared.extensions.lab.acts import panels
from fared.extensions.lab.acts.cast import SHARE_TOLERANCE, Cast, choose, measure, weighted
from fared.extensions.lab.acts.changed import JUMBO, changed
from fared.extensions.lab.acts.panels import Panel
from fared.extensions.lab.acts.stage import DemoError, DemoStage
from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.expected import Rate, expected_shares, path_capacities
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.ranks import ranks_at
from fared.extensions.lab.steady import steady, through
from fared.extensions.lab.topology import LabTopology

TAKEN = 0.6
"""What the tenant takes of the link."""
_NEAR = 0.013
_DEADLINE = 60.0
_SETTINGS = {
    "metric": "available",
    "time-constant": "10s",
    "measure-period": "200ms",
    "dead-band": "2%",
}
_HEADERS = 100


@dataclass(frozen=True)
class _Counted:
    """Shares of the uplinks at one time: by arithmetic, and as counted."""

    when: str
    expected: dict[str, float]
    measured: dict[str, float]

    @property
    def error(self) -> float:
        return max(abs(self.measured.get(up, 0.0) - part) for up, part in self.expected.items())

    def panel(self, cast: Cast) -> Panel:
        """What a picture has of it."""
        title = f"{cast.source_host} to {cast.target_host}, {self.when}"
        measured = [self.measured.get(up, 0.0) for up in self.expected]
        bars = {"computed": [*self.expected.values()], "measured": measured}
        return Panel(title, [*self.expected], bars, panels.share)


def prepared(source: LabTopology) -> LabTopology:
    """Return the topology with weights by available bandwidth."""
    return changed(source, adaptive=_SETTINGS)


def play(stage: DemoStage) -> None:
    """Play the act. Raises LabError."""
    fabric = stage.fabric
    cast = choose(fabric)
    leaf = next((leaf for leaf in cast.watched if leaf.name != cast.source.name), None)
    if leaf is None:
        raise DemoError("the tenant needs a third leaf with a host")
    host = ranks_at(fabric.plan, leaf.name)[0].name
    stage.build()
    stage.note(f"{', '.join(f'{key}: {value}' for key, value in _SETTINGS.items())}")
    taken = cast.rate * TAKEN
    told = [_measure(stage, cast, "before", fabric.rate)]
    stage.headline(f"A tenant at {host} takes {format_bandwidth(taken)} bit/s of {cast.link}")
    stream = through(fabric, host, cast.tail.name, cast.head.name, taken)
    remaining = left(fabric.rate, cast, taken)
    with steady(fabric, [replace(stream, payload=JUMBO - _HEADERS)]):
        told.append(_follow(stage, cast, "while it sends", remaining))
    stage.headline("The tenant ends")
    told.append(_follow(stage, cast, "after it", fabric.rate))
    stage.show(_table(told), *(shares.panel(cast) for shares in told))
    worst = max(shares.error for shares in told)
    stage.claim(
        f"shares are within {SHARE_TOLERANCE * 100:.0f} points of the arithmetic: "
        f"{worst * 100:.1f}",
        holds=worst <= SHARE_TOLERANCE,
    )
    stage.finish()


def left(rate: Rate, cast: Cast, taken: BytesPerSecond) -> Rate:
    """Return the rates that the tenant leaves of the link that it loads."""

    def rest(port: PortAddresses) -> BytesPerSecond | None:
        whole = rate(port)
        loaded = (port.node, port.peer) == (cast.tail.name, cast.head.name)
        return whole - taken if loaded and whole is not None else whole

    return rest


def computed(plan: AddressPlan, cast: Cast, rate: Rate) -> dict[str, float]:
    """Return the shares of the source's uplinks by arithmetic."""
    return expected_shares(path_capacities(plan, rate, cast.source.name, cast.target.name))


def _follow(stage: DemoStage, cast: Cast, when: str, rate: Rate) -> _Counted:
    """Wait until the weights are near their end, and count what flows do."""
    begun = time.monotonic()
    accepts = weighted(stage.fabric.plan, cast, rate, _NEAR)
    done = stage.wait([cast.source], accepts, _DEADLINE, f"leaves weight what is left, {when}")
    stage.done(f"{cast.source.name} holds weights as computed", begun, done)
    return _measure(stage, cast, when, rate)


def _measure(stage: DemoStage, cast: Cast, when: str, rate: Rate) -> _Counted:
    report = measure(stage, cast)
    measured = {up.interface: up.measured for up in report.uplinks}
    return _Counted(when, computed(stage.fabric.plan, cast, rate), measured)


def _table(told: list[_Counted]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("next hop")
    for shares in told:
        table.add_column(shares.when, justify="right")
        table.add_column("computed", justify="right", style="dim")
    for uplink in told[0].expected:
        cells = [
            f"{part:.1%}"
            for shares in told
            for part in (shares.measured.get(uplink, 0.0), shares.expected[uplink])
        ]
        table.add_row(uplink, *cells)
    return table
