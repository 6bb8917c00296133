"""Fixture documents: leaf L1 of a fabric with four spines, one link at a quarter capacity."""

from fared.management.documents import operation
from fared.management.documents.declare import Document
from fared.management.documents.registry import all_documents
from tests.api.documents import (
    aggregation,
    bgp,
    changes,
    databases,
    links,
    multicast,
    page,
    recordings,
    router,
    routing,
)
from tests.api.documents.common import Json
from tests.api.sample import sample


def named(*modules: object) -> dict[str, Json]:
    """The documents of modules, by name."""
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, dict) and "format" in value
    }


NAMED = named(
    router, links, databases, routing, multicast, aggregation, changes, page, recordings, bgp
)


def answer(entry: Document) -> Json:
    """The answer of a daemon: the first document of that format, or a schema sample."""
    blank = sample(entry.row)
    return next((shown for shown in NAMED.values() if shown["format"] == entry.format), blank)


ANSWERS: dict[str, Json] = {entry.command: answer(entry) for entry in all_documents()} | {
    "config-diff": changes.CONFIG_DIFF,
    "config-apply": changes.CONFIG_CHANGE,
    "config-confirm": changes.CONFIRMED,
    "config-rollback": changes.CONFIG_CHANGE,
    "config-history": changes.CONFIG_HISTORY,
    "reload": changes.RELOAD,
    "drain": changes.DRAIN,
    "undrain": changes.DRAIN | {"drained": False},
    "restart": sample(operation.RestartDocument, announced=True),
    "clear-neighbor": changes.CLEARED_NEIGHBORS,
    "clear-counters": sample(operation.ClearedCounters, cleared=True),
    "log-level": changes.LOG_LEVEL,
    "clear-limits": sample(operation.LimitsDocument, cleared=True),
    "record-start": recordings.RECORD,
    "record-stop": recordings.RECORD | {"recording": False},
    "record-status": recordings.RECORD,
}
