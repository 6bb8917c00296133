"""Parts of documents: fields with types and units.

A unit says how people read a number. It is part of the type of a field, so no table repeats it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Annotated, Any, Self

import msgspec
from msgspec import UnsetType

from fared.management.documents import human

Seconds = Annotated[float, human.duration]
UnixTime = float
BytesPerSecond = Annotated[float, human.bandwidth] | None
LinkDelay = Annotated[float, human.duration] | UnsetType
"""Seconds in one direction; left out where no router floods it."""
Ratio = Annotated[float, human.share]
Causes = Annotated[list[str], human.because]


class Facts(msgspec.Struct):
    """A part of a document, such as a row: its fields are the keys in JSON.

    A field whose value is ``msgspec.UNSET`` is left out.
    """

    @classmethod
    def of(cls, *sources: object, **given: Any) -> Self:  # noqa: ANN401 - a field's value
        """Return one with ``given``, and attributes of the first source that has them.

        An enum is shown by its value. Raises TypeError if a field is found nowhere.
        """
        for name in cls.__struct_fields__:
            for source in () if name in given else sources:
                value = getattr(source, name, msgspec.UNSET)
                if value is not msgspec.UNSET:
                    given[name] = value.value if isinstance(value, enum.Enum) else value
                    break
        return cls(**given)

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        """Return one of JSON. Raises msgspec.ValidationError."""
        return msgspec.convert(value, cls)


class OfProtocol(Facts, tag_field="proto"):
    """A part of a document that only one protocol has; its tag, the key ``proto``, is the name."""

    @property
    def proto(self) -> str:
        """The protocol."""
        return str(self.__struct_config__.tag)


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
