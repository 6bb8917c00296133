"""What a change was about, in words, and the ways to name one to ``show changed``."""

import time

import pytest
from msgspec.structs import replace

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, clos3
from fared.extensions.sim.levels import clos3_isis
from fared.management.documents.changed import changed
from fared.management.documents.context import ViewContext
from fared.management.documents.convergence import convergence
from fared.management.documents.errors import CommandError
from tests.api.seen import seen_from

QUIET = 120.0


def settled(fabric: Fabric) -> None:
    fabric.network.run_until_quiet(fabric.network.now + QUIET)


@pytest.fixture(scope="module", params=[clos3, clos3_isis], ids=["ospf", "isis"])
def fabric(request) -> Fabric:
    """A slow link, then one cut, then a leaf gone and back."""
    fabric = request.param(3, 4)
    network = fabric.network
    network.start_all()
    settled(fabric)
    network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    settled(fabric)
    network.set_link("S3", "L3", up=False)
    settled(fabric)
    network.run_for(100.0)
    network.kill("L4")
    network.run_for(60.0)
    network.start("L4")
    settled(fabric)
    return fabric


@pytest.fixture
def context(fabric) -> ViewContext:
    return seen_from(fabric, "L1")


def texts(context: ViewContext) -> list[str]:
    return [text for change in convergence(context).changes for text in change.changes]


def test_changes_are_told_by_router_and_link(context):
    expected = ["S1 > L2: 400G to 100G", "S3-L3 gone", "L4 gone", "L4 back"]
    assert [text for text in texts(context) if text in expected] == expected


def test_a_change_is_named_by_its_number_its_age_or_its_time(context):
    changes = convergence(context).changes
    number, wanted = next(
        (len(changes) - index, change)
        for index, change in enumerate(changes)
        if change.changes == ["S3-L3 gone"]
    )
    age = context.wall - wanted.at
    clock = time.strftime("%H:%M:%S", time.localtime(wanted.at))
    for when in (str(number), f"{age:.3f}s", str(wanted.at), clock):
        found = changed(context, when)
        assert (found.at, found.changes) == (pytest.approx(wanted.at), ["S3-L3 gone"]), when


@pytest.mark.parametrize(
    ("when", "hint"),
    [
        ("0", "'show convergence' has"),
        ("900", "'show convergence' has"),
        ("5h", "the nearest"),
        ("soon", r"an age \(5m\), a time \(12:50\)"),
        ("25:61", "an age"),
    ],
)
def test_what_names_no_change_is_told_with_a_hint(context, when, hint):
    with pytest.raises(CommandError, match=hint):
        changed(context, when)


def test_a_time_of_day_that_is_to_come_was_yesterday(context):
    late = replace(context, wall=time.mktime((2026, 11, 29, 0, 30, 0, 0, 0, -1)))
    with pytest.raises(CommandError, match="no change at 23:59 is remembered"):
        changed(late, "23:59")
