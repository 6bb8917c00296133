"""Links by name, where nothing else about them matters."""

from __future__ import annotations

from fared.core.links import Link


def named(name: str) -> Link:
    """Return a link that is up; ``lo`` is the loopback."""
    return Link(1, name, True, 1500, loopback=name == "lo")
