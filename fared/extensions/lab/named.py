"""TAB in a shell: nodes, links and ranks of the lab that is up, from its state file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from fared.core import link_text
from fared.extensions.lab import holder
from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import STATE_FILE
from fared.extensions.lab.ranks import all_ranks
from fared.extensions.lab.topology import from_document


def nodes(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a node."""
    return _offered(_topology(context).get("nodes", ()), begun)


def ranks(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a host or a GPU."""
    return _offered(_ranks(context), begun)


def rank_lists(
    context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete the last name of a list of ranks, which a collective and a colon may precede."""
    before = begun[: max(begun.rfind(","), begun.rfind(":")) + 1]
    named = before.rpartition(":")[2].split(",")
    return _offered([before + name for name in _ranks(context) if name not in named], begun)


def links(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete a link, or the second of two nodes."""
    if context.params.get(parameter.name or ""):
        return nodes(context, parameter, begun)
    ends = (link["endpoints"] for link in _topology(context).get("links", ()))
    names = [[end.partition(":")[0] for end in pair] for pair in ends]
    return _offered([link_text.link(a, b) for a, b in names], begun)


def _ranks(context: click.Context) -> list[str]:
    state = _state(context)
    try:
        plan = make_plan(from_document(state["topology"], Path(state["origin"])))
    except (LabError, KeyError):
        return []
    return [rank.name for rank in all_ranks(plan)]


def _topology(context: click.Context) -> dict[str, Any]:
    found: dict[str, Any] = _state(context).get("topology", {}).get("topology", {})
    return found


def _state(context: click.Context) -> dict[str, Any]:
    """Return the state of the lab; nothing without a lab, or with several."""
    chosen = context.find_root().params.get("name")
    try:
        found: dict[str, Any] = json.loads(
            (holder.choose(chosen).directory / STATE_FILE).read_text("utf-8")
        )
    except (LabError, OSError, ValueError):
        return {}
    return found


def _offered(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in dict.fromkeys(names) if name.startswith(begun)]
