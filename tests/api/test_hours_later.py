"""S3-L5 of a 4x8 fabric has failed: what its ends, and a router far away, tell two hours later.

And after a restart of one end and of the observer, which no longer know who was there.
``test_missing.py`` has each reason, ``monitoring/test_causes.py`` that alerts last as long as the
metrics say so.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.ids import AreaId
from fared.core.lost_neighbors import LostNeighbor
from fared.extensions.sim.fabric import Fabric, FabricBuilder, clos3
from fared.extensions.sim.levels import COMMON, Levels
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import (
    BuildScope,
    IsisBuilder,
    OspfBuilder,
    ProtocolBuilder,
    Purpose,
)
from fared.management.documents import lost
from fared.management.documents.cells import Styled
from fared.management.documents.context import ViewContext
from fared.management.documents.missing import summary
from fared.management.documents.views.explain import explain
from fared.management.documents.views.fabric import fabric
from fared.management.documents.views.graph import topology
from fared.management.documents.views.status import status
from fared.management.documents.views.validate import validate
from fared.protocols.isis.settings import CircuitSettings
from fared.protocols.ospf.settings import InterfaceSettings
from tests.api.seen import scraped, seen_from

TWO_HOURS = 7200.0
HELLO = 60
"""Seconds: with the usual one, two hours are half a million hellos."""
FAR_END = {"S3": "L5", "L5": "S3"}
LINKS = {"S3": 8, "L5": 4}


class CalmIsis(IsisBuilder, frozen=True):
    """IS-IS with a hello interval of a minute."""

    def port(self, scope: BuildScope, purpose: Purpose) -> CircuitSettings:
        return replace(super().port(scope, purpose), hello_interval=float(HELLO))


def calm_link(area: AreaId) -> InterfaceSettings:
    return InterfaceSettings(area, hello_interval=HELLO, router_dead_interval=4 * HELLO)


CALM = [OspfBuilder(calm_link), CalmIsis(COMMON)]


def failed(protocol: ProtocolBuilder, seconds: float) -> Fabric:
    """The fabric so long after the failure."""
    builder = FabricBuilder(Network(seed=1), protocols=(protocol,))
    builder.levels(Levels())
    made = clos3(4, 8, builder=builder)
    made.network.start_all()
    made.network.run_for(120.0)
    made.network.set_link("S3", "L5", up=False)
    made.network.run_for(seconds)
    return made


@pytest.fixture(scope="module", params=CALM, ids=["ospf", "isis"])
def later(request: pytest.FixtureRequest) -> Fabric:
    return failed(request.param, TWO_HOURS)


def end_of(made: Fabric, name: str) -> ViewContext:
    """An end of the link; the daemon has kept who was there, unless it was restarted."""
    context = seen_from(made, name)
    (instance,) = context.instances
    far = seen_from(made, FAR_END[name]).instances[0].root
    gone = LostNeighbor(far, context.wall - TWO_HOURS, "LLDown")
    context.runtime.lost_neighbors.add((instance.name, FAR_END[name]), gone)
    return context


def failing(context: ViewContext) -> dict[str, str]:
    return {check.name: check.detail for check in validate(context).checks if not check.ok}


@pytest.mark.parametrize("name", FAR_END)
def test_an_end_tells_which_link_is_down_since_when_and_why(later: Fabric, name: str):
    context, far, all_links = end_of(later, name), FAR_END[name], LINKS[name]
    links = status(context).links
    (missing,) = links.missing
    assert (links.total, missing.interface, missing.cause) == (all_links, far, "carrier")
    assert missing.hostname == far
    told = summary(links, context.wall)
    assert isinstance(told, Styled)
    assert told.text == f"1 of {all_links} down: {far} (2h00m, carrier lost)"
    wrong = f"{all_links - 1} of {all_links} have one: {far}: carrier lost"
    assert failing(context) == {"links have an adjacency": wrong}


@pytest.mark.parametrize("name", FAR_END)
def test_the_metrics_of_an_end_still_have_the_link_and_the_neighbor(later: Fabric, name: str):
    """So that the alerts last as long as their cause."""
    values = scraped(end_of(later, name))
    assert len(values["link_up"]) == len(values["neighbor_up"]) == LINKS[name]
    assert [key for key, up in values["link_up"].items() if not up] == [(FAR_END[name],)]
    ((interface, neighbor, _),) = [key for key, up in values["neighbor_up"].items() if not up]
    assert (interface, neighbor != "") == (FAR_END[name], True)


def test_a_router_far_away_tells_what_the_fabric_lacks_and_that_its_own_links_are_up(later: Fabric):
    context = seen_from(later, "L1")
    (missing,) = fabric(context).missing
    assert (missing.name, missing.links) == ("S3-L5", 1)
    assert context.wall - missing.since == pytest.approx(TWO_HOURS, abs=60.0)
    assert lost.why(missing) == "it was there; all 7 siblings of L5 have it"
    assert [[each.name for each in area.lost] for area in topology(context).areas] == [["S3-L5"]]
    (hop,) = explain(context, str(later.leaf_prefixes["L5"])).missing
    assert (hop.hostname, hop.link) == ("S3", "S3-L5")
    assert summary(status(context).links, context.wall) == "4 up"
    assert failing(context) == {}
    values = scraped(context)
    assert {*values["link_up"].values(), *values["neighbor_up"].values()} == {1}


@pytest.mark.parametrize("protocol", CALM, ids=["ospf", "isis"])
def test_after_a_restart_of_both_the_end_and_the_observer_still_miss_the_link(
    protocol: ProtocolBuilder,
):
    """They remember nothing; the configuration wants the link, and so do the siblings of L5."""
    made = failed(protocol, 60.0)
    for name in ("L5", "L1"):
        made.network.kill(name)
        made.network.run_for(5.0)
        made.network.start(name)
    made.network.run_for(120.0)
    context = seen_from(made, "L5")
    (missing,) = status(context).links.missing
    assert (missing.interface, missing.hostname, missing.cause) == ("S3", None, "carrier")
    assert failing(context) == {"links have an adjacency": "3 of 4 have one: S3: carrier lost"}
    values = scraped(context)
    assert values["link_up"]["S3",] == 0
    assert [key[:2] for key, up in values["neighbor_up"].items() if not up] == [("S3", "")]
    for observer in ("L5", "L1"):
        (each,) = fabric(seen_from(made, observer)).missing
        assert (each.name, each.since) == ("S3-L5", None)
        assert lost.why(each) == "all 7 siblings of L5 have it"
    (remembered,) = fabric(seen_from(made, "L2")).missing
    assert lost.why(remembered) == "it was there; all 7 siblings of L5 have it"
