"""Tables of the configuration: what runs, differences, changes and their history."""

from __future__ import annotations

import json
import time

from rich.console import Console
from rich.text import Text

from fared.management.documents import human
from fared.management.documents.paper import Json, Renderer, emit, styled, table


def _config(document: Json, out: Console, _now: float) -> None:
    import yaml  # noqa: PLC0415 - 10 ms, for this table only

    which = "saved" if document.get("saved") else "running"
    out.print(Text(f"# {document['file']}, {which}, with all defaults", style="dim"))
    text = yaml.safe_dump(document["config"], sort_keys=False, default_flow_style=False)
    out.print(Text(text.rstrip()), soft_wrap=True)


def _config_diff(document: Json, out: Console, _now: float) -> None:
    if not document["changes"]:
        out.print("no differences")
        return
    for change in document["changes"]:
        text = Text(change["path"], style="bold")
        before, after = _value(change["old"]), _value(change["new"])
        text.append(f": {before} -> {after}", style="")
        harmless = change["action"] == "update-in-place"
        text.append(f"  [{change['action']}]", style="green" if harmless else "yellow")
        out.print(text, soft_wrap=True)


def _value(value: object) -> str:
    return "(none)" if value is None else json.dumps(value)


def _reload(document: Json, out: Console, now: float) -> None:
    for error in document["errors"]:
        out.print(Text(error, style="red"), soft_wrap=True)
    for warning in document.get("warnings", []):
        out.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    out.print(styled("applied" if document["applied"] else "refused", good=document["applied"]))
    if document["changes"]:
        _config_diff(document, out, now)


def _changed(document: Json, out: Console, now: float) -> None:
    """Answer of apply, confirm and rollback, with what to do next."""
    for error in document["errors"]:
        out.print(Text(error, style="red"), soft_wrap=True)
    for warning in document["warnings"]:
        out.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    if not document["applied"]:
        out.print(styled("refused", good=False))
        return
    if document["confirmed"]:
        out.print(styled("confirmed and saved", good=True))
        return
    _config_diff(document, out, now)
    within = document["confirm_within"]
    if within is None:
        out.print(styled("applied and saved", good=True))
        return
    back = human.duration(within)
    out.print(Text(f"applied; unless you confirm, the former one returns in {back}:", "yellow"))
    out.print("  fared-cli config confirm")


def _history(document: Json, out: Console, now: float) -> None:
    grid = table(">N", "Since", "How", "By", ">Changes", "", "~Comment")
    for entry in document["entries"]:
        state = "" if entry["state"] == "final" else entry["state"]
        if entry["back"] == 0 and not state:
            state = "running"
        grid.add_row(
            str(entry["back"]),
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry["at"])),
            entry["how"],
            entry["user"],
            str(entry["changes"]),
            Text(state, style="yellow" if state == "unconfirmed" else "dim"),
            entry["comment"],
        )
    emit(out, grid)
    until = document["unconfirmed_until"]
    if until is not None:
        left = human.duration(max(until - now, 0))
        out.print(Text(f"unless confirmed, the former one returns in {left}", style="yellow"))


RENDERERS: dict[str, Renderer] = {
    "fared-config/1": _config,
    "fared-config-diff/1": _config_diff,
    "fared-config-change/1": _changed,
    "fared-config-history/1": _history,
    "fared-reload/1": _reload,
}
