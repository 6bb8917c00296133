"""What ``fared-cli path --lsdb FILE`` prints: paths through a database, after some changes."""

from __future__ import annotations

from itertools import chain
from typing import Any

from fared.extensions.offline.changes import Changes
from fared.extensions.offline.cli.arguments import Names, WhatIf, read_changes, solver_settings
from fared.extensions.offline.cli.printing import print_answer
from fared.extensions.offline.cli.source import load_database
from fared.extensions.offline.path import PathQuestion, path_document
from fared.extensions.offline.world import SavedDatabase
from fared.management.cli.session import Failure, Mistake
from fared.management.documents.context import family_number
from fared.management.documents.errors import CommandError
from fared.management.documents.human import PROTOCOLS

_PIPE_WIDTH = 160
_Given = dict[str, Any]
"""Values of options by parameter."""


def show(given: _Given, asked: _Given, *, as_json: bool) -> None:
    """Print the paths. ``asked``: arguments of the daemon's command; ``given``: those of a file.

    Raises Failure, or click.UsageError.
    """
    database = load_database(given.pop("lsdb"))
    _check_protocol(database, asked["proto"])
    first, *others = database.families
    before = database.world(None, first, Changes())
    names = Names(before)
    what_if = WhatIf(*(given.pop(name) for name in WhatIf.__struct_fields__))
    changes = read_changes(names, what_if)
    settings = solver_settings(**given)
    after = before if changes == Changes() else database.world(None, first, changes)
    worlds = chain([after], (database.world(None, family, changes) for family in others))
    ends = PathQuestion(asked["source"], asked["destination"], family_number(asked["af"]))
    try:
        document = path_document(worlds, database.own, settings, ends)
    except CommandError as error:
        raise Failure(str(error), _hint(names, ends)) from error
    print_answer(document, as_json=as_json, width=_PIPE_WIDTH)


def _check_protocol(database: SavedDatabase, proto: str | None) -> None:
    if proto not in (None, database.proto):
        message = f"--proto {proto}: the database is one of {PROTOCOLS[database.proto]}"
        raise Mistake(message, "omit --proto: a file has one protocol")


def _hint(names: Names, ends: PathQuestion) -> str:
    """Return what to do if there is no path."""
    for text in (ends.source, ends.destination):
        if "/" not in text and not names.knows(text):
            return f"{text!r}: {names.near(text)}"
    return "'fared-cli spf --lsdb FILE --root SRC' lists the routes of SRC"
