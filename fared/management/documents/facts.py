"""Parts of documents: fields with types and units.

A unit says how people read a number. It is part of the type of a field, so no table repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

import msgspec

from fared.management.documents import human

Seconds = Annotated[float, human.duration]
UnixTime = float
BytesPerSecond = Annotated[float, human.bandwidth] | None
Ratio = Annotated[float, human.share]
Causes = Annotated[list[str], human.because]


class Facts(msgspec.Struct, kw_only=True):
    """A part of a document, such as a row: its fields are the keys in JSON.

    A field whose value is ``msgspec.UNSET`` is left out.
    """

    @classmethod
    def of(cls, source: object, **given: Any) -> Self:  # noqa: ANN401 - a field's value
        """Return one with ``given``, and the attributes of ``source`` for all other fields."""
        names = (name for name in cls.__struct_fields__ if name not in given)
        return cls(**given, **{name: getattr(source, name) for name in names})


class NamedNode(Facts):
    """A router or network; ``hostname`` None: it advertises none."""

    id: str
    hostname: str | None

    @property
    def name(self) -> str:
        """The hostname, or the id."""
        return human.router(self.id, self.hostname)


Built = Facts | Mapping[str, Any]
"""A document, or JSON text of it that another process has made, in a mapping."""
