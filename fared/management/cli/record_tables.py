"""Tables of recordings and of their replays."""

from __future__ import annotations

import time

from rich.console import Console
from rich.text import Text

from fared.management.documents import human
from fared.management.documents.paper import Cell, Json, Renderer, facts, styled

_MOST_OUTPUTS = 10
_MOST_RAISED = 5


def _record(document: Json, out: Console, now: float) -> None:
    running, failure = document["recording"], document["failure"]
    state = styled("recording" if running else "not recording", good=running, bad="")
    if failure:
        state.append(f", failed: {failure}", style="red")
    rows: list[tuple[str, Cell]] = [("State", state)]
    if document["directory"] is not None:
        limit, size = _mebibytes(document["limit"]), _mebibytes(document["size"])
        rows += [
            ("Directory", document["directory"]),
            ("Begun", f"{human.duration(now - document['since'])} ago"),
            ("Calls", _number(document["calls"])),
            ("Files", f"{size} in {document['segments']} segments, at most {limit}"),
        ]
    facts(out, rows)


def _replay(document: Json, out: Console, _now: float) -> None:
    begun = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(document["recorded_at"]))
    begins = "its first call" if document["begins"] == "router" else "a state"
    rows: list[tuple[str, Cell]] = [
        ("Router", human.router(document["router_id"], document["hostname"])),
        ("Recorded", f"{begun} by fared {document['version']}, from {begins} on"),
        ("Replayed", f"{_number(document['calls'])} calls, {human.duration(document['seconds'])}"),
        ("Result", _result(document)),
    ]
    if document["until"] is not None:
        word = "reached" if document["reached"] else "did not come"
        rows.append(("Until", styled(f"{document['until']}: {word}", good=document["reached"])))
    rows += [
        ("Now", f"{document['neighbors']} links in use, {_number(document['routes'])} routes"),
        (
            "Digests",
            f"databases {document['databases_digest']}, routes {document['routes_digest']}",
        ),
    ]
    if document["test"] is not None:
        rows.append(("Test", f"written, with {document['test']}"))
    rows += [("Raised", Text(text, style="red")) for text in document["raised"][:_MOST_RAISED]]
    events = sorted(document["events"].items(), key=lambda item: (-item[1], item[0]))
    rows.append(("Events", ", ".join(f"{name} {_number(number)}" for name, number in events)))
    facts(out, rows)
    _difference(document, out)


def _result(document: Json) -> Text:
    if document["equal"] is None:
        return Text("not compared: another version wrote it", style="yellow")
    if not document["equal"]:
        return Text("differs", style="red")
    end = ", databases and routes at the end too" if document["confirmed"] else ""
    return Text(f"all outputs are equal{end}", style="green")


def _difference(document: Json, out: Console) -> None:
    """Print the first difference, with the outputs of this router."""
    found = document["difference"]
    if found is None:
        return
    out.print()
    where = f"segment {found['segment']}, call {_number(found['call'])}, at {found['now']:.6f} s"
    out.print(Text(f"{where}: {found['what']}", style="red"))
    for output in found["outputs"][:_MOST_OUTPUTS]:
        out.print(Text(f"  {output}"))
    left = len(found["outputs"]) - _MOST_OUTPUTS
    if left > 0:
        out.print(f"  and {left} more")


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"


def _number(value: int) -> str:
    return f"{value:,}"


RENDERERS: dict[str, Renderer] = {
    "fared-record/1": _record,
    "fared-replay/1": _replay,
}
