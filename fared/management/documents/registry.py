"""The registry of documents, by name.

The commands of the control socket, the paths of HTTP and their index, the commands of
``fared-cli``, ``tech-support`` and the tests are derived from it. A new ``show`` is a module of
this package and its name here, where the order is that of lists. Other packages plug theirs in. A
module is imported when its document is asked for; a list of all of them imports all.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from fared.management.documents.declare import PROTO, Answer, Argument, Document
from fared.runtime.extensions import SERVICES, is_installed

_HERE = "fared.management.documents"


_PLUGGED_IN = MappingProxyType({each.section: each.document for each in SERVICES})
"""The modules of documents that other packages add, where these are installed."""
_ALL_SHOWN = (
    "status",
    "interfaces",
    "load",
    "neighbors",
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
COMMANDS = ("explain", "path", "validate")
"""Documents that are commands of their own."""


class FormerDocument(NamedTuple):
    """A document that has no module yet."""

    name: str
    format: str
    view: str | Callable[..., Any]
    help: str
    args: tuple[Argument, ...] = ()
    narrowed: bool = False
    shown: bool = True
    rare: bool = False
    row: None = None

    @property
    def command(self) -> str:
        """The command on the control socket."""
        return f"show {self.name}" if self.shown else self.name

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """All arguments of a request."""
        return (*self.args, PROTO) if self.narrowed else self.args


_FORMER = (
    FormerDocument(
        "interfaces",
        "fared-interfaces/1",
        "protocol:interfaces",
        "Interfaces with their capacity and load.",
        narrowed=True,
    ),
    FormerDocument(
        "neighbors",
        "fared-neighbors/1",
        "protocol:neighbors",
        "Neighbors of OSPF, adjacencies of IS-IS.",
        narrowed=True,
    ),
    FormerDocument(
        "graceful-restart",
        "fared-graceful-restart/1",
        "protocol:graceful_restart",
        "Graceful restarts of this router, and of neighbors that it helps.",
        narrowed=True,
    ),
    FormerDocument(
        "database",
        "fared-database/1",
        "protocol:database",
        "The link-state database. With ID, also the contents of these LSAs or LSPs.\n\n"
        "IS-IS: TYPE is lsp, pseudonode, level-1 or level-2 and optional; ID is that of an LSP, or"
        " a system id or hostname.",
        (
            Argument("type", word="TYPE", parameter="kind"),
            Argument("id", word="ID", parameter="entry_id"),
        ),
        narrowed=True,
    ),
    FormerDocument(
        "lsdb",
        "fared-lsdb/1",
        "protocol:lsdb",
        "The raw database. With --json, the file that 'spf --lsdb' reads.\n\n"
        "If both protocols run, the file has that of OSPF unless --proto is given.",
        narrowed=True,
    ),
    FormerDocument("timers", "fared-timers/1", "protocol:timers", "Pending timers.", narrowed=True),
)

_BY_NAME = MappingProxyType({document.name: document for document in _FORMER})
_ANSWERS = MappingProxyType(
    {
        "config-change": "config_changes",
        "config-diff": "config_changes",
        "config-history": "config_changes",
        "drain": "operation",
        "limits": "operation",
        "record": "recordings",
        "reload": "config_changes",
        "replay": "recordings",
        "restart": "operation",
    }
)
"""The modules of answers to other requests, by name in their format."""


def all_documents(*, plugged_in: bool = True) -> tuple[Document | FormerDocument, ...]:
    """Return all documents, in the order of lists; or those of this package alone."""
    names = (n for n in (*SHOWN, *COMMANDS) if plugged_in or n not in _PLUGGED_IN)
    return tuple(map(document_of, names))


def find(name: str) -> Document | FormerDocument | None:
    """Return the document of a name such as ``routes`` or ``explain``; None if there is none."""
    return document_of(name) if name in SHOWN or name in COMMANDS else None


def by_command(command: str) -> Document | FormerDocument | None:
    """Return the document of a command of the control socket; None if it has none."""
    word, _, name = command.partition(" ")
    names, name = (SHOWN, name) if word == "show" else (COMMANDS, command)
    return document_of(name) if name in names else None


@cache
def narrowed() -> tuple[str, ...]:
    """Return the names of documents that ``show`` can restrict to one protocol."""
    return tuple(d.name for d in all_documents() if d.shown and d.narrowed)


@cache
def document_of(name: str) -> Document | FormerDocument:
    """Return a document by its name, which exists."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    found: Document = _module_of(name).DOCUMENT
    return found


def row_of(format_name: str) -> type[Answer] | None:
    """Return the class of documents of a format; None for an unknown one."""
    name = format_name.removeprefix("fared-").partition("/")[0]
    if name not in (*SHOWN, *COMMANDS, *_ANSWERS) or name in _BY_NAME:
        return None
    rows = (row for row in vars(_module_of(name)).values() if isinstance(row, type))
    answers = (row for row in rows if issubclass(row, Answer))
    return next((row for row in answers if row.__struct_config__.tag == format_name), None)


def _module_of(name: str) -> Any:  # noqa: ANN401 - a module
    here = f"{_HERE}.{_ANSWERS.get(name, name).replace('-', '_')}"
    return importlib.import_module(_PLUGGED_IN.get(name, here))
