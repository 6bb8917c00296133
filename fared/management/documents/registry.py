"""The registry of documents, by name.

The commands of the control socket, the paths of HTTP and their index, the commands of
``fared-cli``, ``tech-support`` and the tests are derived from it. A new ``show`` is a module of
this package and its name here, where the order is that of lists. Other packages plug theirs in. A
module is imported when its document is asked for; a list of all of them imports all.
"""

from __future__ import annotations

import importlib
from functools import cache
from types import MappingProxyType
from typing import Any

from fared.management.documents.declare import COMMANDS, Answer, Document, name_of
from fared.runtime.extensions import SERVICES, is_installed

_HERE = "fared.management.documents"


_PLUGGED_IN = MappingProxyType({each.section: each.document for each in SERVICES})
"""The modules of documents that other packages add, where these are installed."""
_ALL_SHOWN = (
    "status",
    "interfaces",
    "load",
    "neighbors",
    "bgp-summary",
    "bgp-routes",
    "graceful-restart",
    "database",
    "lsdb",
    "topology",
    "fabric",
    "spf",
    "routes",
    "weights",
    "fib",
    "convergence",
    "changed",
    "bfd",
    "bier",
    *_PLUGGED_IN,
    "timers",
    "counters",
    "memory",
    "log",
    "config",
)
SHOWN = tuple(
    name for name in _ALL_SHOWN if name not in _PLUGGED_IN or is_installed(_PLUGGED_IN[name])
)
"""``show NAME``."""


_ANSWERS = MappingProxyType(
    {
        "clear-counters": "operation",
        "clear-neighbor": "operation",
        "config-change": "config_changes",
        "config-diff": "config_changes",
        "config-history": "config_changes",
        "drain": "operation",
        "limits": "operation",
        "log-level": "operation",
        "record": "recordings",
        "reload": "config_changes",
        "replay": "recordings",
        "restart": "operation",
    }
)
"""The modules of answers to other requests, by name in their format."""


def all_documents(*, plugged_in: bool = True) -> tuple[Document, ...]:
    """Return all documents, in the order of lists; or those of this package alone."""
    names = (n for n in (*SHOWN, *COMMANDS) if plugged_in or n not in _PLUGGED_IN)
    return tuple(map(document_of, names))


def find(name: str) -> Document | None:
    """Return the document of a name such as ``routes`` or ``explain``; None if there is none."""
    return document_of(name) if name in SHOWN or name in COMMANDS else None


def by_command(command: str) -> Document | None:
    """Return the document of a command of the control socket; None if it has none."""
    word, _, name = command.partition(" ")
    names, name = (SHOWN, name) if word == "show" else (COMMANDS, command)
    return document_of(name) if name in names else None


@cache
def narrowed() -> tuple[str, ...]:
    """Return the names of documents that ``show`` can restrict to one protocol."""
    return tuple(name for name in SHOWN if document_of(name).narrowed)


@cache
def document_of(name: str) -> Document:
    """Return a document by its name, which exists."""
    found: Document = _module_of(name).DOCUMENT
    return found


def row_of(format_name: str) -> type[Answer] | None:
    """Return the class of documents of a format; None for an unknown one."""
    name = name_of(format_name)
    if name not in (*SHOWN, *COMMANDS, *_ANSWERS):
        return None
    rows = (row for row in vars(_module_of(name)).values() if isinstance(row, type))
    answers = (row for row in rows if issubclass(row, Answer))
    return next((row for row in answers if row.__struct_config__.tag == format_name), None)


def _module_of(name: str) -> Any:  # noqa: ANN401 - a module
    here = f"{_HERE}.{_ANSWERS.get(name, name).replace('-', '_')}"
    return importlib.import_module(_PLUGGED_IN.get(name, here))
