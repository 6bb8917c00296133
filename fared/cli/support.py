"""``fared-cli tech-support``: everything the daemon can tell, in one file for a bug report."""

from __future__ import annotations

import time

from fared.api.schema import SHOW_DOCUMENTS
from fared.cli.session import Failure, Json, Session

_VARIANTS: dict[str, Json] = {"spf": {"log": True}, "fib": {"diff": True}}


def gather(session: Session) -> Json:
    """Collect all documents; what cannot be had is replaced by the reason.

    Raises Failure if not even the status can be had.
    """
    documents: Json = {"status": session.ask("show", "status")}
    wanted: list[tuple[str, str, str | None, Json]] = [
        (name, "show", name, {}) for name in SHOW_DOCUMENTS if name != "status"
    ]
    for name, args in _VARIANTS.items():
        wanted.append((f"{name} {next(iter(args))}", "show", name, args))
    if documents["status"].get("ospf") and documents["status"].get("isis"):
        wanted.append(("lsdb isis", "show", "lsdb", {"proto": "isis"}))
    wanted.append(("validate", "validate", None, {}))
    for key, command, what, args in wanted:
        try:
            documents[key] = session.ask(command, what, args)
        except Failure as failure:
            documents[key] = {"error": failure.message}
    return {"format": "fared-tech-support/1", "at": time.time(), "documents": documents}
