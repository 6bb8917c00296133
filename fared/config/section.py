"""The base of all sections of the configuration file, and the effect of a reload of a field.

A setting is declared once, at its field in a section: type, unit, limits, default and ``Reload``.
From there it goes three ways without being written again:

- ``settings_of`` passes it to the engine, whose settings have a field of the same name; what has
  another name or form there is converted in ``fared.daemon.change``;
- ``fared.config.shapes`` reads, writes and describes it: errors, ``show config``, ``config diff``,
  the JSON schema, and the words of man fared.yaml;
- ``config/fared.yaml`` shows it to operators, with its default and a comment. The page takes the
  comment as its help, and ``tests/config/test_examples.py`` compares the file with the fields.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


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
    instead: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Keys that people know from other daemons and that no field has: what to do instead."""

    @classmethod
    def prepare(cls, data: object) -> object:
        """Return the data to read instead of the given data. Raises Refused."""
        return data

    @classmethod
    def check_given(cls, given: Mapping[str, Any]) -> None:
        """Raise Refused if keys must not be combined, with any values."""

    def check(self) -> None:
        """Raise Refused if fields contradict each other."""


def settings_of(kind: type[S], /, *sections: Section, **derived: Any) -> S:  # noqa: ANN401
    """Return settings of an engine: fields that a section has by the same name, and ``derived``.

    The latter come first, then the last section.
    """
    for part in reversed(sections):
        for name in _shared(kind, type(part)):
            if name not in derived:
                derived[name] = getattr(part, name)
    return kind(**derived)


@functools.cache
def _shared(kind: type[msgspec.Struct], section: type[Section]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name in section.__struct_fields__)
