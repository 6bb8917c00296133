"""Settings that both engines get from the configuration: when to advertise, filters, and BIER."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fared.config import Config
from fared.config.section import Section, settings_of
from fared.core.filters import Filter, within
from fared.core.routes import ORIGIN_TAGS, RouteSource
from fared.paths.te.advertise import AdvertiseSettings
from fared.paths.weights.path_capacity import WeightMode

if TYPE_CHECKING:
    from fared.core.bier import BierSettings

DISPLAYED_THRESHOLD, DISPLAYED_INTERVAL = 0.25, 30.0
"""Load is advertised rarely if no weights follow it, for display only."""


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
    """Return when to advertise the load of a link, and a path capacity."""
    threshold, budget = config.adaptive.announce_threshold, config.adaptive.announce_budget
    settings = AdvertiseSettings(threshold, budget=budget, path_threshold=threshold)
    if weight_mode(config) is WeightMode.AVAILABLE:
        return settings
    return replace(settings, threshold=DISPLAYED_THRESHOLD, minimum_interval=DISPLAYED_INTERVAL)


def filters_of(config: Config, section: Section) -> tuple[Filter, ...]:
    """Return the filters of a redistributed source: of its ``prefixes``, and the one it names."""
    prefixes = tuple(sorted(getattr(section, "prefixes", ())))
    named = config.filter(getattr(section, "filter", None))
    return (*([within(prefixes)] if prefixes else []), *([named] if named else []))


def refused_tags(config: Config, proto: RouteSource, source: RouteSource) -> tuple[int, ...]:
    """Return the tags of a source's routes that come from a protocol, which takes none back.

    Those of all borders, unless the configuration has another, and the one that it has here. BGP
    passes none on.
    """
    section = None if source is RouteSource.BGP else config.protocols.get(source.value)
    there = None if section is None else getattr(section.redistribute, proto.value, None)
    own = getattr(there, "tag", None)
    return (ORIGIN_TAGS[proto], *([own] if own else []))


def bier_settings(config: Config) -> BierSettings | None:
    """Return the settings of BIER; None where it does not run."""
    section = config.bier
    if section is None:
        return None
    from fared.core.bier import BierSettings  # noqa: PLC0415 - where BIER runs

    hosts = tuple(sorted(section.hosts.items()))
    return settings_of(BierSettings, section, length=section.bsl, hosts=hosts)
