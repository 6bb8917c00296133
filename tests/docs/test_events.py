"""``docs/events.md`` lists every event of the log with its fields, and no other."""

import re

from tests.docs.events import events_of
from tests.docs.test_links import _ROOT

ROW = re.compile(r"^\| (`[^|]+`) \| [^|]* \|([^|]*)\|$", re.MULTILINE)
NAME = re.compile(r"`([a-z0-9_-]+)`")
ANYWHERE = {"suppressed", "exception"}
"""Fields that the page mentions once for all events."""


def rows() -> list[tuple[list[str], str]]:
    text = (_ROOT / "docs/events.md").read_text()
    return [(NAME.findall(names), fields.strip()) for names, fields in ROW.findall(text)]


def listed_fields() -> dict[str, set[str]]:
    """The fields that the page gives to each event, with those that any may have."""
    return {name: {*NAME.findall(fields), *ANYWHERE} for names, fields in rows() for name in names}


def test_the_page_lists_every_event_once():
    found = [name for names, _ in rows() for name in names]
    assert len(set(found)) == len(found)
    assert set(found) == set(events_of(_ROOT / "fared"))


def test_the_page_lists_the_fields_of_every_event_by_name():
    page = listed_fields()
    named = events_of(_ROOT / "fared")
    assert {
        event: fields - page[event] for event, fields in named.items() if fields - page[event]
    } == {}
    for names, fields in rows():
        assert re.fullmatch(r"(`[a-z0-9_]+`(, `[a-z0-9_]+`)*)?", fields), names


def test_the_source_is_read_as_it_logs():
    """One event of each way to log."""
    found = events_of(_ROOT / "fared")
    assert {"starting", "drain", "undrain", "interface-opened", "fib-drift-repaired"} <= set(found)
    assert {"interface", "share"} <= found["link-sick"]
    assert "seconds" in found["loop-was-away"]
    assert {"operation", "error"} <= found["fib-operation-refused"]
    assert {"router_id", "source"} <= found["ospf-rejected"]
    assert "isis-database-full" in found
