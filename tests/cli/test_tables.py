"""Tables for people: compared with golden text, and never wider than they must be."""

import copy
import os
import time
from pathlib import Path

import pytest

from fared.management.cli.tables import write
from fared.management.documents.paper import console
from fared.management.documents.registry import all_documents, row_of
from tests.api import documents, isis_documents
from tests.api.documents.changes import SAVED
from tests.api.documents.common import NOW
from tests.api.documents.links import NEIGHBORS, neighbor
from tests.api.documents.page import FABRIC
from tests.api.documents.routing import WEIGHTS
from tests.api.sample import sample

GOLDEN = Path(__file__).parent / "golden"
SHOWN = {
    name.lower(): shown
    for name, shown in (documents.NAMED | documents.named(isis_documents)).items()
}


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    """Log lines show local time."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("COLUMNS", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def rendered(document, width=80):
    out = console(width)
    with out.capture() as captured:
        write(document, out, NOW)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_each_document_reads_as_its_golden_text(name):
    """Set UPDATE_GOLDEN=1 to write the files anew, then look at them."""
    text = rendered(SHOWN[name])
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("entry", all_documents(), ids=lambda entry: entry.name)
def test_an_empty_document_has_a_table(entry):
    """A router that has just begun has no routes, no neighbors, and no figures."""
    blank, usual = (
        sample(entry.row),
        documents.ANSWERS[entry.command],
    )
    text = rendered(blank | {key: type(usual[key])() for key in usual.keys() - blank.keys()})
    assert "format" not in text
    assert row_of(entry.format) is entry.row


def test_show_weights_marks_weights_shifted_for_few_flows():
    text = rendered(WEIGHTS | {"flows": 128})
    first = "weights follow: capacity, skewed away from small paths for 128 flows"
    assert text.splitlines()[0] == first


def test_the_budget_of_announcements_is_shown():
    text = rendered(WEIGHTS)
    assert "ospf 0.0.0.0: 3.91 of 500 announcements/s (16 of 2048 link ends)" in text
    assert "loads averaged over 4.1 s, 7 deferred" in text


def test_long_names_widen_a_table_and_are_not_cut():
    """A narrow terminal never costs an address its last digits."""
    document = copy.deepcopy(NEIGHBORS)
    for entry in document["neighbors"]:
        entry.update(address="255.255.255.255", area="255.255.255.254", hostname="h" * 40)
    lines = rendered(document).splitlines()
    assert all(("h" * 40) in line and "255.255.255.255" in line for line in lines[1:5])
    assert "255.255.255.254" in lines[1]
    assert lines[0].endswith("Flaps")


def test_64_neighbors_fit_80_columns():
    document = copy.deepcopy(NEIGHBORS)
    document["neighbors"] = [
        neighbor(n, interface=f"Ethernet{n}", state="Exchange", address=f"10.128.{n}.254")
        for n in range(1, 65)
    ]
    lines = rendered(document).splitlines()
    assert len([line for line in lines if "Exchange" in line]) == 64
    assert all(len(line) <= 80 for line in lines)


def test_routers_of_a_fabric_are_listed_by_the_numbers_in_their_names():
    document = copy.deepcopy(FABRIC)
    leaves = [node for node in document["nodes"] if node["role"] == "leaf"]
    for node, name in zip(leaves, ("leaf10", "leaf9"), strict=True):
        node["hostname"] = name
    text = rendered(document)
    assert text.index("leaf9") < text.index("leaf10")


def test_a_hostname_is_text_not_markup():
    """What a neighbor calls itself is shown as it is."""
    document = copy.deepcopy(NEIGHBORS)
    document["neighbors"][0]["hostname"] = "[bold red]x[/] :smile:"
    assert "[bold red]x[/] :smile:" in rendered(document)


def test_an_empty_table_states_that_it_is_empty():
    """No neighbors is an answer."""
    assert rendered({**NEIGHBORS, "neighbors": []}) == "none\n"


def test_a_document_that_lacks_fields_is_shown_as_json():
    """After an upgrade the former daemon still runs; its status tells which one it is."""
    assert '"version": "0.1.0"' in rendered({"format": "fared-status/1", "version": "0.1.0"})
    assert '"areas": []' in rendered({"format": "fared-lsdb/1", "areas": []})


def test_an_unknown_document_is_shown_as_json():
    """A newer daemon can still be read."""
    assert '"format": "fared-new/7"' in rendered({"format": "fared-new/7"})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (SAVED["changes"][:1], "applied and saved"),
        (
            SAVED["changes"],
            "applied and saved; 1 setting waits for a restart: 'fared-cli restart'",
        ),
        (
            SAVED["changes"][1:],
            "saved; 1 setting waits for a restart: 'fared-cli restart'",
        ),
    ],
)
def test_a_change_of_settings_that_wait_for_a_restart_says_so(changes, told):
    assert rendered(SAVED | {"changes": changes}).splitlines()[-1] == told


def test_a_wide_terminal_has_one_row_for_each_change():
    """On 80 columns stages and causes are two tables, with the numbers of the rows."""
    lines = rendered(SHOWN["convergence"], 160).splitlines()
    assert [line.split()[0] for line in lines if "spine1" in line] == ["2", "1"]
    assert "460us" in next(line for line in lines if "spine1-leaf2 gone" in line)
