"""Prints any document as a table: each ``*_tables`` module has those of some formats.

Only the module with the table is imported, since the tool prints one document and exits.
"""

from __future__ import annotations

import contextlib
import importlib
import json
from types import MappingProxyType

import msgspec
from rich.console import Console

from fared.management.documents.paper import Json, Paper, Renderer
from fared.management.documents.registry import row_of

_TABLES = MappingProxyType(
    {
        "system_tables": "timers",
        "database_tables": "database lsdb",
        "interface_tables": "interfaces neighbors graceful-restart",
    }
)
"""The documents for which a module has tables."""
_MODULES = MappingProxyType(
    {
        f"fared-{name}/1": f"fared.management.cli.{module}"
        for module, names in _TABLES.items()
        for name in names.split()
    }
)


def renderer_of(format_name: str) -> Renderer | None:
    """Return the function that prints documents of a format; None for an unknown one."""
    module = _MODULES.get(format_name)
    if module is None:
        return None
    found: Renderer = importlib.import_module(module).RENDERERS[format_name]
    return found


def write(document: Json, out: Console, now: float) -> None:
    """Print any document, as JSON if its format is unknown or it lacks fields.

    ``now`` is Unix time. Fields are lacking while the daemon that has been upgraded still runs.
    """
    row = row_of(document.get("format", ""))
    if row is not None:
        with contextlib.suppress(msgspec.ValidationError):
            msgspec.convert(document, row).show(Paper(out, now))
            return
    renderer = renderer_of(document.get("format", ""))
    if renderer is None:
        out.print(json.dumps(document, indent=2), soft_wrap=True)
    else:
        renderer(document, out, now)
