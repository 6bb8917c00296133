"""``docs/events.md`` lists every event of the log, and no other."""

import re

from fared.api.documents import PROTOCOLS
from tests.docs.events import events_of
from tests.docs.test_links import _ROOT

LISTED = re.compile(r"^\| (`[^|]+`) \|", re.MULTILINE)


def listed() -> list[str]:
    text = (_ROOT / "docs/events.md").read_text()
    return [name for cell in LISTED.findall(text) for name in re.findall(r"`([a-z0-9-]+)`", cell)]


def test_the_page_lists_every_event_once():
    found = listed()
    assert len(set(found)) == len(found)
    composed = {f"{name}-rejected{more}" for name in PROTOCOLS for more in ("", "-many")}
    assert set(found) == set(events_of(_ROOT / "fared")) | composed


def test_the_source_is_read_as_it_logs():
    """One event of each way to log."""
    found = events_of(_ROOT / "fared")
    assert {"starting", "drain", "undrain", "interface-opened", "fib-drift-repaired"} <= set(found)
    assert {"interface", "share"} <= found["link-sick"]
