"""``fared-cli tech-support``: every document of the daemon, in one file for a bug report."""

from __future__ import annotations

import time
from collections.abc import Iterator

from fared.api import human
from fared.api.documents import DOCUMENTS
from fared.cli.session import Failure, Json, Session


def gather(session: Session) -> Json:
    """Collect all documents; the reason replaces one that is unavailable.

    Raises Failure if even the status is unavailable.
    """
    documents: Json = {"status": session.ask("show", "status")}
    wanted = dict(_wanted())
    for proto in _others(documents["status"]):
        wanted[f"lsdb {proto}"] = ("show", "lsdb", {"proto": proto})
    for key, (command, what, args) in wanted.items():
        if key not in documents:
            documents[key] = _had(session, command, what, args)
    return {"format": "fared-tech-support/1", "at": time.time(), "documents": documents}


def _others(status: Json) -> list[str]:
    """Return the running protocols besides the one that is shown by default."""
    return [proto for proto in human.PROTOCOLS if status.get(proto)][1:]


def _wanted() -> Iterator[tuple[str, tuple[str, str | None, Json]]]:
    """Yield all documents without required arguments, and their variants by flag."""
    for document in DOCUMENTS:
        if any(argument.required for argument in document.args):
            continue
        command, what = ("show", document.name) if document.show else (document.name, None)
        yield document.name, (command, what, {})
        for argument in document.args:
            if argument.kind == "flag":
                yield f"{document.name} {argument.name}", (command, what, {argument.name: True})


def _had(session: Session, command: str, what: str | None, args: Json) -> Json:
    try:
        return session.ask(command, what, args)
    except Failure as failure:
        return {"error": failure.message}
