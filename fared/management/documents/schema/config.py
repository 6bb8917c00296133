"""Documents of the configuration: what runs, differences, changes and their history."""

from __future__ import annotations

from typing import Any, TypedDict

from fared.management.documents.schema.common import JsonDocument, Seconds, UnixTime


class ConfigDocument(JsonDocument):
    """``show config``: a configuration with all defaults, in the form of the file.

    ``saved``: whether it is the file's, which was written at ``loaded_at``, and not what runs.
    """

    file: str
    loaded_at: UnixTime
    config: dict[str, Any]
    saved: bool


class ConfigChange(TypedDict):
    """``action`` is update-in-place, bounce-adjacency or restart-required."""

    path: str
    old: Any
    new: Any
    action: str


class ConfigDiff(JsonDocument):
    """``config diff FILE`` (arguments ``text``, ``file``): the file compared with what runs."""

    changes: list[ConfigChange]


class ReloadDocument(JsonDocument):
    """``config reload``. ``errors`` are lines for people; if there are any, nothing was applied.

    ``changes`` lists all differences; those marked restart-required were not applied.
    """

    applied: bool
    changes: list[ConfigChange]
    errors: list[str]


class ConfigChanged(JsonDocument):
    """``config apply``, ``config confirm`` and ``config rollback``.

    Arguments of the first: ``text``, ``file``, ``confirm`` (seconds), ``comment``; of the last:
    ``back``, ``confirm``, ``comment``.

    ``errors`` are lines for people; if there are any, nothing was applied. ``confirmed``: this was
    the confirmation. ``confirm_within``: the former configuration returns after so many seconds.
    """

    applied: bool
    confirmed: bool
    confirm_within: Seconds | None
    changes: list[ConfigChange]
    errors: list[str]
    warnings: list[str]


class ConfigEntry(TypedDict):
    """One configuration that ran; ``back`` 0 is what runs, ``config rollback N`` applies N.

    ``how``: start, reload, apply, rollback, or return (of the former one). ``state``: final,
    unconfirmed, or expired. ``changes``: differences from the one before.
    """

    back: int
    at: UnixTime
    how: str
    user: str
    comment: str
    changes: int
    state: str


class ConfigHistory(JsonDocument):
    """``config history``, newest first; ``unconfirmed_until`` as in ``show status``."""

    unconfirmed_until: UnixTime | None
    entries: list[ConfigEntry]
