"""What documents and metrics say of a session of FPM."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6
from fared.daemon.people.metrics import families
from fared.extensions.sim.fabric import clos3
from fared.extensions.sim.network import Network
from fared.fpm.session import FpmSession
from fared.management.documents.context import ViewContext
from fared.management.documents.views import kernel
from fared.management.documents.views.validate import validate
from tests.api.seen import seen_from
from tests.fpm.fpmsyncd import Fpmsyncd


@pytest.fixture(scope="module")
def context() -> ViewContext:
    """A leaf of a small fabric."""
    fabric = clos3(2, 3, network=Network(seed=1))
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    return seen_from(fabric, "L1")


def _with_session(context, withheld: str | None = None):
    """A context whose session has sent all routes to a double, and its answers."""
    names = {index: link.name for index, link in context.links.items()}
    if withheld is not None:
        names = {index: "eth0" if name == withheld else name for index, name in names.items()}
    session = FpmSession(
        201,
        {FAMILY_IPV4: 20, FAMILY_IPV6: 20},
        wanted=lambda: context.router.planner.installed,
        names=names.get,
    )
    peer = Fpmsyncd(names, {201: "ospf"})
    client = peer.connect()
    session.connected(0.0)
    while session.has_output():
        peer.send(client, session.writable(1 << 16, 0.0))
    facts = SimpleNamespace(
        session=session,
        connected_at=1.0,
        address="127.0.0.1:2620",
        slow=False,
        warm_restart="restored",
    )
    return replace(context, fpm=facts), client


def _check(view):
    return next(c for c in validate(view).checks if c.name == "the switch has the routes")


def _metrics(view) -> dict[str, float]:
    found = [family for family in families(view, {}) if family is not None]
    return {s.name: s.value for f in found for s in f.samples if s.name.startswith("fared_fpm")}


def test_without_fpm_nothing_is_said_of_it(context) -> None:
    document = kernel.fib(context)
    assert not hasattr(document.fpm, "state")
    assert all(isinstance(row.offloaded, bool) is False for row in document.routes)
    assert not _metrics(context)


def test_routes_are_offloaded_once_they_are_acknowledged(context) -> None:
    view, client = _with_session(context)
    total = len(context.router.planner.installed.routes)
    assert total > 3
    check = _check(view)
    assert not check.ok
    assert check.detail.startswith(f"{total} routes not acknowledged: ")
    assert {row.offloaded for row in kernel.fib(view).routes} == {False}
    view.fpm.session.received(client.read(), 0.0)
    assert {row.offloaded for row in kernel.fib(view).routes} == {True}
    fpm = kernel.fib(view).fpm
    assert fpm.warm_restart == "restored"
    assert (fpm.state, fpm.announced, fpm.waiting, fpm.since) == ("up", total, 0, 1.0)
    assert _check(view).ok
    found = _metrics(view)
    assert found["fared_fpm_up"] == 1
    assert found["fared_fpm_routes"] == found["fared_fpm_acknowledgements_total"] == total


def test_a_lost_peer_and_withheld_next_hops_fail_the_validation(context) -> None:
    uplink = next(
        context.links[hop[0]].name for hop in context.router.planner.installed.nexthops.values()
    )
    view, client = _with_session(context, withheld=uplink)
    view.fpm.session.received(client.read(), 0.0)
    assert "with next hops withheld" in _check(view).detail
    assert kernel.fib(view).fpm.withheld
    view.fpm.session.lost()
    assert _check(view).detail == "no connection to 127.0.0.1:2620"
