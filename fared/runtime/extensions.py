"""What plugs into the router and its client: names of parts, imported where somebody wants them.

No other module of the router's house names an extension, but for its section of the configuration.
A package that is not installed plugs nothing in.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any, Final

import msgspec


class Service(msgspec.Struct, frozen=True):
    """A service of the daemon, its document and its requests, where the configuration enables it.

    ``section``: that of the configuration, with ``enabled``. Its document is ``show SECTION``, and
    its requests are ``SECTION-...``. All others are names, ``module:attribute``.
    """

    section: str
    title: str
    service: str
    """``(section, runner, log, links)``; a ``context.PluggedIn``."""
    requests: str
    """The classes of its requests, by command."""
    perform: str
    """``(service, request)``: performs one of them."""
    document: str
    """The module of its document."""


class PluggedCommand(msgspec.Struct, frozen=True):
    """A command of ``fared-cli``; the first sentence of its help is for lists.

    ``as_json``: these commands of it, or else itself, have an option ``--json`` of their own.
    ``group``: the command of ``fared-cli`` of which it is one; empty: it is one of its own.
    """

    name: str
    target: str
    help: str
    as_json: tuple[str, ...] = ()
    group: str = ""


class PluggedOptions(msgspec.Struct, frozen=True):
    """Options for a command of the router's house.

    ``target`` adds them: it takes the command and returns it. ``option`` is the one without which
    the others mean nothing.
    """

    command: str
    option: str
    target: str


_AGGREGATION: Final = "fared.extensions.ina"
_FOREIGN: Final = "fared.extensions.foreign"
_OFFLINE: Final = "fared.extensions.offline.cli"
SERVICES: Final = (
    Service(
        "ina",
        "in-network aggregation",
        service=f"{_AGGREGATION}.service.jobs:InaService",
        requests=f"{_AGGREGATION}.service.requests:REQUESTS",
        perform=f"{_AGGREGATION}.service.requests:perform",
        document=f"{_AGGREGATION}.document",
    ),
)
COMMANDS: Final = (
    PluggedCommand(
        "decode", f"{_OFFLINE}.decode:decode", "Decode packets, an LSA or a capture (offline)."
    ),
    PluggedCommand(
        "spf", f"{_OFFLINE}.spf:spf", "Compute the routes of a saved database (offline)."
    ),
    PluggedCommand(
        "ina",
        f"{_AGGREGATION}.cli.jobs:ina",
        "Jobs of in-network aggregation, and their planning.",
        ("plan",),
    ),
    PluggedCommand(
        "plan", f"{_OFFLINE}.plan:plan", "Plan failures and jobs (offline).", ("failures", "jobs")
    ),
    PluggedCommand(
        "import",
        f"{_FOREIGN}.command:import_file",
        "Write a configuration from one of FRR or BIRD, with all that it does not take (offline).",
        group="config",
    ),
    PluggedCommand(
        "lsdb", f"{_OFFLINE}.lsdb:lsdb", "Make a database file from a capture (offline)."
    ),
)
"""In the order of lists."""
OPTIONS: Final = (PluggedOptions("path", "--lsdb", f"{_OFFLINE}.path:with_file"),)


def commands_of(group: str) -> tuple[PluggedCommand, ...]:
    """Return the commands that plug into a group; empty: into ``fared-cli`` itself."""
    return tuple(each for each in COMMANDS if each.group == group)


def part(name: str) -> Any:  # noqa: ANN401 - each part has its own type
    """Import a part. Raises ImportError."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def is_installed(module: str) -> bool:
    """Whether the package of a module is there."""
    try:
        return find_spec(module.rpartition(".")[0]) is not None
    except ModuleNotFoundError:
        return False
