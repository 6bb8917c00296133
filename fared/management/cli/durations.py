"""Options of ``fared-cli`` that are durations."""

from __future__ import annotations

import click

from fared.core.units import parse_duration


def read_duration(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """Read the value of an option, seconds. Raises click.BadParameter."""
    if value is None:
        return None
    try:
        return parse_duration(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a duration such as 90s or 5m") from None
