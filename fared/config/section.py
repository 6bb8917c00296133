"""The base of all sections of the configuration file, and the effect of a reload of a field."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec


class Reload(enum.StrEnum):
    """The effect of a change, from harmless to impossible while running.

    A field declares it, as in ``passive: Annotated[bool, Reload.BOUNCE]``; a field without one is
    updated in place. ``fared-cli config diff`` reports it, and ``changes.merged`` keeps the running
    value of what needs a restart. For an optional section it is the effect of adding or removing
    the section, for a mapping by name that of removing an entry.

    BOUNCE: the adjacencies of the interface, or of all in the area, end, and form again when both
    ends agree. That includes a change that this router makes in place but that makes an unchanged
    neighbor refuse its hellos (RFC 2328 §10.5).
    """

    UPDATE = "update-in-place"
    BOUNCE = "bounce-adjacency"
    RESTART = "restart-required"


class Section(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One mapping of the file; its fields are the keys, an empty one means all defaults.

    The annotation of a field defines its form in the file (``fared.config.shapes``). ``dict``:
    values computed from a section once (``functools.cached_property``) are kept with it.
    """

    unwritten: ClassVar[tuple[object, ...]] = ()
    """Fields with one of these values are omitted when the section is written."""

    @classmethod
    def prepare(cls, data: object) -> object:
        """Return the data to read instead of the given data. Raises Refused."""
        return data

    @classmethod
    def check_given(cls, given: Mapping[str, Any]) -> None:
        """Raise Refused if keys must not be combined, with any values."""

    def check(self) -> None:
        """Raise Refused if fields contradict each other."""
