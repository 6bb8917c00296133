"""Parts of documents: fields with types and units.

A unit says how people read a number. It is part of the type of a field, so no table repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from fared.management.documents import human

Seconds = Annotated[float, human.duration]
UnixTime = float
BytesPerSecond = Annotated[float, human.bandwidth] | None
Ratio = Annotated[float, human.share]


class Facts(msgspec.Struct, kw_only=True):
    """A part of a document, such as a row: its fields are the keys in JSON.

    A field whose value is ``msgspec.UNSET`` is left out.
    """


Built = Facts | Mapping[str, Any]
"""A document, or JSON text of it that another process has made, in a mapping."""
