"""What a word of a command may be, for TAB in the shells and in the prompt: asked from the daemon.

``of(name)`` is the ``shell_complete`` of click for an argument of that name. It asks with little
patience, and offers nothing where no daemon answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click

from fared.management.cli.session import Json, Session
from fared.management.documents.human import LOG_LEVELS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
Found = Iterable[tuple[str, str]]
"""Values, each with what is known about it."""
_PATIENCE: Final = 1.0
_MOST: Final = 1000


def of(name: str) -> Completer | None:
    """Return what completes an argument of this name; None if nothing is known about it."""
    source = _SOURCES.get(name)
    return None if source is None else lambda ctx, _, text: offered(source(_Asked(ctx)), text)


def offered(found: Found, text: str) -> list[CompletionItem]:
    """Return the values that begin with ``text``, each once; none if the daemon does not answer."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for TAB

    items: dict[str, CompletionItem] = {}
    try:
        for value, known in found:
            if value.startswith(text) and len(items) < _MOST:
                items.setdefault(value, CompletionItem(value, help=known or None))
    except (click.ClickException, KeyError, TypeError):
        return []
    return list(items.values())


def files(_ctx: click.Context, _param: click.Parameter, text: str) -> list[CompletionItem]:
    """Leave the name of a file to the shell."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for TAB

    return [CompletionItem(text, type="file")]


class _Asked:
    """The daemon, and the words before."""

    def __init__(self, ctx: click.Context) -> None:
        self._session = ctx.ensure_object(Session)
        self.params = ctx.params

    def __call__(self, command: str, **args: str) -> Json:
        return self._session.ask(command, dict(args), _PATIENCE)


def _routers(ask: _Asked) -> Found:
    for area in ask("show topology")["areas"]:
        for node in area["nodes"]:
            if not node["network"]:
                yield node["hostname"] or node["id"], node["id"] if node["hostname"] else ""


def _prefixes(ask: _Asked) -> Found:
    for route in ask("show routes")["routes"]:
        hops = [hop["hostname"] or hop["address"] or "" for hop in route["nexthops"]]
        yield route["prefix"], f"via {', '.join(hops)}" if hops else route["type"]


def _targets(ask: _Asked) -> Found:
    yield from _routers(ask)
    yield from _prefixes(ask)


def _interfaces(ask: _Asked) -> Found:
    for row in ask("show interfaces")["interfaces"]:
        yield row["interface"], row["state"]


def _neighbors(ask: _Asked) -> Found:
    for row in ask("show neighbors")["neighbors"]:
        name = row["hostname"] or row.get("router_id") or row.get("system_id")
        yield name, f"on {row['interface']}, {row['state']}"


def _neighbor_names(ask: _Asked) -> Found:
    yield from _neighbors(ask)
    for row in ask("show neighbors")["neighbors"]:
        yield row["interface"], f"to {row['hostname'] or row.get('router_id') or ''}"


def _entries(ask: _Asked) -> Iterator[tuple[str, str, str, str]]:
    """Yield type, id, router and contents of all LSAs and LSPs."""
    found = ask("show database")
    scopes = (*found["areas"], {"lsas": found["as_scope"]}) if "areas" in found else ()
    for scope in scopes:
        for lsa in scope["lsas"]:
            name = lsa["hostname"] or lsa["adv_router"]
            yield lsa["type"], lsa["id"], name, lsa.get("about") or ""
    for level in found.get("levels", ()):
        for lsp in level["lsps"]:
            yield "", lsp["lsp_id"], lsp["hostname"] or "", ""


def _database(ask: _Asked) -> Found:
    """Types, and routers, which is what the first word selects."""
    entries = list(_entries(ask))
    yield from ((kind, "") for kind, *_ in entries if kind)
    yield "self", "of this router"
    yield from ((name, "") for _, _, name, _ in entries if name)
    yield from ((name, about) for kind, name, _, about in entries if not kind)


def _database_ids(ask: _Asked) -> Found:
    given = ask.params.get("type") or ""
    for kind, name, router, about in _entries(ask):
        if kind == given or (kind and router == given):
            yield name, about or router


def _history(ask: _Asked) -> Found:
    for entry in ask("config-history")["entries"]:
        yield str(entry["back"]), f"{entry['how']} by {entry['user']}: {entry['comment'] or '-'}"


def _changes(ask: _Asked) -> Found:
    latest = reversed(ask("show convergence")["changes"])
    for number, change in enumerate(latest, start=1):
        yield str(number), (change.get("changes") or change["causes"] or [""])[0]


def _events(ask: _Asked) -> Found:
    for line in ask("show log")["lines"]:
        yield line["event"], ""


_SOURCES: Final = MappingProxyType(
    {
        "at": _changes,
        "back": _history,
        "destination": _targets,
        "events": _events,
        "id": _database_ids,
        "interface": _interfaces,
        "interfaces name": _interfaces,
        "level": lambda _: ((level, "") for level in LOG_LEVELS),
        "neighbor": _neighbor_names,
        "neighbors name": _neighbor_names,
        "node": _routers,
        "prefix": _prefixes,
        "source": _routers,
        "type": _database,
        "via": _neighbors,
    }
)
"""By the name of an argument, or of its document and argument."""


def of_document(document: str, argument: str) -> Completer | None:
    """Return what completes an argument of a document."""
    return of(f"{document} {argument}") or of(argument)
