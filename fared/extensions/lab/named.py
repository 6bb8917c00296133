"""TAB in a shell: nodes and links of the lab that is up, from its state file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from fared.core import link_text
from fared.extensions.lab import holder
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import STATE_FILE


def nodes(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a node."""
    return _offered(_topology(context).get("nodes", ()), begun)


def links(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete a link, or the second of two nodes."""
    if context.params.get(parameter.name or ""):
        return nodes(context, parameter, begun)
    ends = (link["endpoints"] for link in _topology(context).get("links", ()))
    names = [[end.partition(":")[0] for end in pair] for pair in ends]
    return _offered([link_text.link(a, b) for a, b in names], begun)


def _topology(context: click.Context) -> dict[str, Any]:
    """Return the topology of the file; nothing without a lab, or with several."""
    chosen = context.parent.params.get("name") if context.parent else None
    try:
        state = json.loads((holder.choose(chosen).directory / STATE_FILE).read_text("utf-8"))
        found: dict[str, Any] = state["topology"]["topology"]
    except (LabError, OSError, ValueError, KeyError):
        return {}
    return found


def _offered(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in dict.fromkeys(names) if name.startswith(begun)]
