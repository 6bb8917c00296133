"""Links without an adjacency are listed with the reason, wherever somebody looks for it."""

from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace

from fared.config import load_text
from fared.core.ids import NodeId
from fared.core.lost_neighbors import LostNeighbor
from fared.extensions.sim.fabric import clos3
from fared.extensions.sim.levels import clos3_isis
from fared.management.documents.context import ViewContext
from fared.management.documents.interface import BgpInterfaceEntry
from fared.management.documents.views import protocol
from fared.management.documents.views.missing import _reasons, link_counts
from fared.management.documents.views.status import status
from fared.management.documents.views.validate import validate
from fared.protocols.igp.refusals import RefusedHello
from tests.api.sample import sample
from tests.api.seen import CONFIG, seen_from

LOST_AT = 1_700_000_000.0


@pytest.fixture(scope="module", params=[clos3, clos3_isis], ids=["ospf", "isis"])
def fabric(request):
    """L1 has two uplinks; the one to S2 is without carrier."""
    fabric = request.param(2, 3)
    fabric.network.start_all()
    fabric.network.run_until_quiet(60.0)
    fabric.network.set_link("L1", "S2", up=False)
    fabric.network.run_until_quiet(120.0)
    return fabric


@pytest.fixture
def context(fabric) -> ViewContext:
    return seen_from(fabric, "L1")


def only(context: ViewContext) -> tuple[str, str]:
    (missing,) = link_counts(context).missing
    return missing.cause, missing.text


def test_a_healthy_router_misses_nothing(fabric):
    context = seen_from(fabric, "L2")
    counts = link_counts(context)
    assert (counts.total, counts.missing) == (2, [])
    found = next(c for c in validate(context).checks if c.name == "links have an adjacency")
    assert (found.ok, found.detail) == (True, "2 of 2 have one")


def test_a_link_without_carrier_says_so_everywhere(context):
    assert only(context) == ("carrier", "carrier lost")
    for document in (protocol.neighbors(context), protocol.interfaces(context)):
        assert [each.interface for each in document.missing] == ["S2"]
    assert status(context).links.total == 2
    found = next(c for c in validate(context).checks if c.name == "links have an adjacency")
    assert (found.ok, found.detail) == (False, "1 of 2 have one: S2: carrier lost")


def test_a_dead_link_has_no_load_and_nothing_free(context):
    ifindex = next(link.ifindex for link in context.links.values() if link.name == "S2")
    context.runtime.utilized[ifindex] = 1e6
    row = next(r for r in protocol.interfaces(context).interfaces if r.interface == "S2")
    assert (row.utilized, row.available) == (None, None)


def test_who_was_there_and_since_when_is_told(context):
    """S1's id is that of the last neighbor, as the daemon remembers it."""
    instance = context.instances[0]
    node = next(link.neighbor for link in instance.local_links)
    lost = LostNeighbor(node, LOST_AT, "LLDown")
    context.runtime.lost_neighbors.add((instance.name, "S2"), lost)
    (missing,) = link_counts(context).missing
    assert (missing.neighbor, missing.since) == (context.node(node), LOST_AT)


def test_an_interface_that_was_switched_off_is_told_apart(context):
    next(link for link in context.links.values() if link.name == "S2").enabled = False
    assert only(context) == ("disabled", "administratively down")


def test_an_interface_that_is_configured_and_not_there_is_missing(fabric):
    text = CONFIG.replace("'*': {}", "'*': {}, swp99: {}, swp98: {passive: true}")
    context = replace(seen_from(fabric, "L2"), config=load_text(text))
    assert only(context) == ("absent", "there is no such interface")


@pytest.mark.parametrize("build", [clos3, clos3_isis], ids=["ospf", "isis"])
def test_a_silent_neighbor_is_told_from_one_that_is_refused(build, monkeypatch):
    fabric = build(2, 3)
    network = fabric.network
    network.start_all()
    network.run_until_quiet(60.0)
    network.kill("S2")
    network.run_for(60.0)
    context = seen_from(fabric, "L1")
    instance = context.instances[0]
    assert only(context) == ("silent", "no hello has arrived")
    node = next(link.neighbor for link in instance.local_links)
    lost = LostNeighbor(node, LOST_AT, "dead")
    context.runtime.lost_neighbors.add((instance.name, "S2"), lost)
    assert only(context) == ("stopped", "the adjacency ended: dead")
    for reason, text in (
        ("InactivityTimer", "no hello within the dead interval"),
        ("holding time expired", "no hello within the holding time"),
        ("1-WayReceived", "it has ended the adjacency"),
    ):
        context.runtime.lost_neighbors.add(
            (instance.name, "S2"), LostNeighbor(node, LOST_AT, reason)
        )
        assert only(context) == ("stopped", text)
    cause, text, now = "area-mismatch", "it is in another area", context.now
    refused = RefusedHello("S2", "10.0.0.9", "10.255.0.9", cause, text, now - 5, now, 6)
    monkeypatch.setattr(instance.engine, "refused", lambda _: (refused,))
    assert only(context) == (cause, f"10.0.0.9 is refused: {text}")


def test_a_session_that_is_missing_is_told_in_words_of_bgp():
    context = SimpleNamespace(links={}, runtime=SimpleNamespace(neighbor_reasons={}))
    given = sample(BgpInterfaceEntry, state="Up", up=True, ifindex=7, refused=[], neighbors=0)
    row = msgspec.convert(given, BgpInterfaceEntry)
    assert list(_reasons(context, row, [], None)) == [("silent", "no session yet")]
    row.neighbors = 1
    lost = LostNeighbor(NodeId(5), LOST_AT, "it has restarted")
    assert [text for _, text in _reasons(context, row, [], lost)] == [
        "the session is being opened",
        "the session ended: it has restarted",
        "no session yet",
    ]


def test_a_circuit_that_is_too_small_for_our_lsps_says_so():
    """No hello is sent, and none accepted: it is not the neighbor that is silent."""
    fabric = clos3_isis(2, 3)
    fabric.network.start_all()
    fabric.network.run_until_quiet(60.0)
    fabric.network.kill("S2")
    fabric.network.run_for(60.0)
    context = seen_from(fabric, "L1")
    circuits = context.isis.instance.circuits.values()
    circuit = next(circuit for circuit in circuits if circuit.name == "S2")
    circuit.link = replace(circuit.link, mtu=1400)
    assert only(context) == ("mtu-too-small", "our MTU is too small for our LSPs (lsp-mtu)")


@pytest.mark.parametrize(
    ("last", "cause"), [("1-WayReceived", "stopped"), ("2-WayReceived", "forming")]
)
def test_a_neighbor_that_ended_the_adjacency_forms_none_before_its_next_sign(last, cause):
    lost = LostNeighbor(NodeId(5), LOST_AT, "1-WayReceived")
    runtime = SimpleNamespace(neighbor_reasons={(7, 5): last})
    context = SimpleNamespace(links={}, runtime=runtime)
    row = SimpleNamespace(ifindex=7, up=True, state="Point-to-point", refused=[], neighbors=1)
    assert next(_reasons(context, row, [], lost))[0] == cause
