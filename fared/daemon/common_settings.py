"""Settings that both engines get from the configuration: when to advertise, and BIER."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fared.config import Config
from fared.te.advertise import AdvertiseSettings
from fared.weights.path_capacity import WeightMode

if TYPE_CHECKING:
    from fared.core.bier import BierSettings

COARSE = AdvertiseSettings(threshold=0.25, minimum_interval=30.0)
"""Load is advertised rarely if no weights follow it, for display only."""
LOOPBACK = "lo"
"""The loopback, where the kernel's flag of a link is not known."""


def weight_mode(config: Config) -> WeightMode:
    """Return the basis of weights: none (plain ECMP), capacity, or available capacity.

    ``equalise`` uses the latter too, with a different rule.
    """
    if not config.adaptive.enabled:
        return WeightMode.NONE
    if config.adaptive.metric == "equalise":
        return WeightMode.AVAILABLE
    return WeightMode(config.adaptive.metric)


def advertise_settings(config: Config) -> AdvertiseSettings:
    """Return when to advertise the load of a link."""
    if weight_mode(config) is not WeightMode.AVAILABLE:
        return replace(COARSE, budget=config.adaptive.announce_budget)
    return AdvertiseSettings(
        threshold=config.adaptive.announce_threshold, budget=config.adaptive.announce_budget
    )


def bier_settings(config: Config) -> BierSettings | None:
    """Return the settings of BIER; None where it does not run."""
    section = config.bier
    if section is None:
        return None
    from fared.core.bier import BierSettings  # noqa: PLC0415 - where BIER runs

    hosts = tuple(sorted(section.hosts.items()))
    return BierSettings(section.sub_domain, section.bfr_id, section.bsl, hosts, section.php)
