"""The ``link-health`` section: which links are watched for errors and flaps, and what follows."""

from __future__ import annotations

import functools
from typing import Annotated, Literal

from msgspec import field

from fared.config import quantities, values
from fared.config.globs import MostExact
from fared.config.section import Section, settings_of
from fared.core.damping import DampingSettings
from fared.core.link_errors import ErrorSettings, ErrorStep

_DAMPING, _ERRORS = DampingSettings(), ErrorSettings()


class HealthStep(Section, frozen=True):
    """From this ratio of errors to packets on, the share of the capacity that is left."""

    ratio: quantities.Ratio
    share: quantities.Ratio


class DampingOptions(Section, frozen=True):
    """Damping of flaps (RFC 2439); each flap adds 1000 to the penalty."""

    half_life: quantities.Period = _DAMPING.half_life
    suppress: Annotated[int, values.whole(1, 1_000_000)] = int(_DAMPING.suppress)
    reuse: Annotated[int, values.whole(1, 1_000_000)] = int(_DAMPING.reuse)
    maximum: quantities.Period = _DAMPING.maximum

    def check(self) -> None:
        """Refuse limits between which nothing can be."""
        if self.reuse >= self.suppress:
            raise values.expected("less than suppress", field="reuse")
        if self.settings().ceiling <= self.suppress:
            what = "long enough for the penalty to exceed suppress (reuse * 2^(maximum/half-life))"
            raise values.expected(what, field="maximum")

    def settings(self) -> DampingSettings:
        """Return them for the arithmetic."""
        return settings_of(DampingSettings, self)


class HealthOptions(Section, frozen=True):
    """How the links of a name or glob are watched. ``mode: monitor`` only tells."""

    mode: Literal["monitor", "act"] = "monitor"
    window: quantities.Period = _ERRORS.window
    errors: Annotated[int, values.whole(1, 1_000_000_000)] = _ERRORS.errors
    drops: bool = False
    fec: bool = True
    steps: tuple[HealthStep, ...] = tuple(
        HealthStep(ratio=step.ratio, share=step.share) for step in _ERRORS.steps
    )
    hold_down: quantities.Period = _ERRORS.hold_down
    damping: DampingOptions = DampingOptions()

    def check(self) -> None:
        """Refuse steps that do not become smaller."""
        ratios, shares = [s.ratio for s in self.steps], [s.share for s in self.steps]
        if ratios != sorted(set(ratios)) or shares != sorted(set(shares), reverse=True):
            raise values.expected("rising ratios with falling shares", field="steps")
        if any(share >= 1.0 for share in shares):
            raise values.expected("shares below 100%", field="steps")

    def error_settings(self) -> ErrorSettings:
        """Return the settings of the judgment."""
        steps = tuple(ErrorStep(step.ratio, step.share) for step in self.steps)
        return settings_of(ErrorSettings, self, steps=steps)


class LinkHealth(Section, frozen=True):
    """``counters`` is a file in the format of /proc/net/dev."""

    counters: values.Directory = "/proc/net/dev"
    interfaces: dict[values.InterfaceGlob, HealthOptions] = field(default_factory=dict)

    @functools.cached_property
    def _by_name(self) -> MostExact[HealthOptions]:
        return MostExact(self.interfaces)

    def options(self, name: str) -> HealthOptions | None:
        """Return how a link is watched; None: it is not."""
        return self._by_name.find(name)
