"""Changes while the daemon runs: of its file, interfaces, addresses and link rates."""

from __future__ import annotations

import copy
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from fared.extensions.lab.kernel_view import KernelView
from tests.live.daemons import LEFT, LEFT_STUB, LINKS, RIGHT_STUB, Live, Pair
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

MORE = "10.0.93.0/24"
SOON = 30
"""Seconds; a router that changes again and again originates its LSA every 5 s only
(MinLSInterval)."""


@pytest.fixture
def running(pair: Pair) -> Iterator[Pair]:
    """The shared pair; its configuration is put back."""
    yield pair
    pair.left.reload()
    pair.await_routes()


def transitions(pair: Pair) -> int:
    return sum(pair.left.counters()["neighbor-transitions"].values())


def changed(pair: Pair, link: str, **settings: Any) -> dict[str, Any]:
    """The configuration with other settings of one interface."""
    config = copy.deepcopy(pair.left.config)
    config["ospf"]["areas"]["0.0.0.0"]["interfaces"][link].update(settings)
    return config


@pytest.mark.parametrize("how", ["SIGHUP", "fared-cli config reload"])
def test_a_changed_cost_applies_without_losing_the_adjacency(running: Pair, how: str):
    """Traffic leaves the dearer link; nobody's state machine moves."""
    before, reloaded = transitions(running), len(reloads(running))
    running.left.write(changed(running, "u0", cost=25))
    if how == "SIGHUP":
        running.left.signal(signal.SIGHUP)
    else:
        done = running.left.cli("config", "reload")
        assert done.returncode == 0, done.stderr
        assert "cost" in done.stdout
    wait_for(lambda: running.used() == {"u1"}, SOON, "the cheaper link only")
    wait_for(lambda: len(reloads(running)) > reloaded, SOON, "it is logged")
    assert transitions(running) == before
    assert running.left.full() == 2
    shown = running.left.show("config")["config"]
    assert shown["ospf"]["areas"]["0.0.0.0"]["interfaces"]["u0"]["cost"] == 25
    assert running.left.show("status")["config"]["last_reload_ok"] is True


def reloads(pair: Pair) -> list[Any]:
    return told(pair, "reloaded")


def told(pair: Pair, event: str) -> list[Any]:
    return [record for record in pair.left.records() if record["event"] == event]


def test_no_signal_ends_a_daemon_that_the_next_one_replaces(running: Pair):
    """Neither before the loop has its handlers nor after, when they are gone."""
    left, reloaded = running.left, len(reloads(running))
    started = len(told(running, "starting"))
    wait_for(left.settled, SOON, "the start is over")
    assert left.cli("restart").returncode == 0

    def restarted() -> bool:
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            left.signal(number)
        assert left.alive()
        return len(told(running, "starting")) > started

    wait_for(restarted, SOON, "the next daemon starts")
    wait_for(lambda: len(reloads(running)) > reloaded, SOON, "it reads its file, as it is told")
    running.await_routes()


@pytest.mark.parametrize("how", ["SIGHUP", "fared-cli config reload"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ospf: [\n", "fared.yaml:"),
        ("ospf: {aera: {}}\n", "'areas'"),
        ("{}\n", "an ospf, isis or bgp section"),
    ],
)
def test_a_bad_file_is_refused_and_the_running_configuration_stays(
    running: Pair, how: str, text: str, said: str
):
    """The reason is told to whoever asked for it, logged, and shown."""
    before, routes = running.left.show("config")["config"], running.view.routes()
    running.left.file.write_text(text)
    if how == "SIGHUP":
        running.left.signal(signal.SIGHUP)
    else:
        done = running.left.cli("config", "reload")
        assert done.returncode == 1
        assert said in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    wait_for(
        lambda: running.left.show("status")["config"]["last_reload_ok"] is False, SOON, "refused"
    )
    assert said in running.left.show("status")["config"]["last_reload_error"]
    assert running.left.metrics()["fared_config_last_reload_success"] == 0
    assert running.left.show("config")["config"] == before
    assert running.view.routes() == routes
    assert running.left.full() == 2
    running.left.reload()
    assert running.left.metrics()["fared_config_last_reload_success"] == 1


def test_a_change_that_requires_a_restart_is_reported_and_not_applied_in_part(running: Pair):
    """A new router id or protocol number waits; the rest of the file applies."""
    config = changed(running, "u0", cost=25)
    config["router-id"] = "10.255.9.77"
    config["fib"] = {"protocol": 202}
    running.left.write(config)
    done = running.left.cli("config", "reload")
    assert done.returncode == 0, done.stderr
    assert "restart" in done.stdout
    wait_for(lambda: running.used() == {"u1"}, SOON, "the new cost applies")
    assert running.left.show("status")["router_id"] == "10.255.9.1"
    assert running.left.settled()


def test_log_level_and_hostname_change_while_it_runs(running: Pair):
    """The log's level acts at once; a hostname taken out of the file is the kernel's again."""
    config = changed(running, "u0", cost=25)
    config["log"] = {"level": "debug", "format": "json"}
    del config["hostname"]
    running.left.reload(config)
    name = socket.gethostname().partition(".")[0]
    wait_for(lambda: name in names_seen_by(running.right), SOON, "the neighbor hears the name")
    wait_for(lambda: levels(running) >= {"debug"}, SOON, "lines of the new level")
    running.left.reload()
    wait_for(lambda: "left" in names_seen_by(running.right), SOON, "its own name again")


def levels(pair: Pair) -> set[str]:
    return {record["level"] for record in pair.left.records()}


def names_seen_by(live: Live) -> set[str]:
    return {neighbor["hostname"] for neighbor in live.show("neighbors")["neighbors"]}


def test_an_address_that_comes_and_goes_is_advertised_and_withdrawn(running: Pair):
    """The network of a new address on a passive interface is reachable at once."""
    before = transitions(running)
    running.right.netns.ip("addr", "add", "10.0.93.1/24", "dev", "d0")
    wait_for(lambda: running.used(MORE) == set(LINKS), SOON, "a route to the new network")
    running.right.netns.ip("addr", "del", "10.0.93.1/24", "dev", "d0")
    wait_for(lambda: not running.view.hops(MORE), SOON, "the route is gone")
    assert transitions(running) == before


def test_routes_leave_a_link_that_goes_down_and_return_when_it_is_up(running: Pair):
    """Down acts at once, not when hellos are missed; up takes the time of a new adjacency."""
    seen = len(running.left.records())
    running.left.netns.ip("link", "set", "u0", "down")
    try:
        wait_for(lambda: running.used() == {"u1"}, SOON, "the other link only")
        wait_for(lambda: running.left.full() == 1, SOON, "one neighbor less")
        lost = [r for r in running.left.records()[seen:] if r["event"] == "neighbor-changed"]
        assert [r["reason"] for r in lost] == ["LLDown"]
    finally:
        running.left.netns.ip("link", "set", "u0", "up")
    wait_for(lambda: running.used() == set(LINKS), SOON, "both links")
    assert running.left.complaints() == running.right.complaints() == []


def test_an_address_removed_from_a_link_and_added_again_restores_the_adjacency(running: Pair):
    """Without an address there is no numbered adjacency; with it there is one again."""
    running.left.netns.ip("addr", "del", "10.129.0.0/31", "dev", "u0")
    try:
        wait_for(lambda: running.used() == {"u1"}, SOON, "the other link only")
    finally:
        running.left.netns.ip("addr", "add", "10.129.0.0/31", "dev", "u0")
    wait_for(lambda: running.used() == set(LINKS), SOON, "both links")


def test_drain_makes_the_router_a_stub_router_until_undrain(running: Pair):
    """RFC 6987: all links at the highest cost; no adjacency ends, what is behind it stays reached.

    A reload in between does not end it.
    """

    def costs() -> set[int]:
        rows = running.right.show("database", type="router", id=LEFT)["areas"][0]["lsas"]
        (own,) = [row for row in rows if row["adv_router"] == LEFT]
        links = own["body"]["links"]
        return {link["metric"] for link in links if link["type_name"] == "point-to-point"}

    before = transitions(running)
    assert running.left.cli("drain").returncode == 0
    wait_for(lambda: costs() == {0xFFFF}, SOON, "its links are avoided")
    assert running.left.cli("config", "reload").returncode == 0
    assert running.left.show("status")["drained"] is True
    assert running.used() == set(LINKS)
    assert running.left.cli("undrain").returncode == 0
    wait_for(lambda: costs() == {10}, SOON, "its links are as before")
    assert running.left.show("status")["drained"] is False
    assert transitions(running) == before


def test_a_drained_link_is_the_last_resort_at_both_ends(running: Pair):
    """Its metric and its adjacency stay; the far end follows; undrain and all is as before."""

    def used_by_the_far_end() -> set[str]:
        return {hop.interface for hop in KernelView(running.right.netns).hops(LEFT_STUB)}

    done = running.left.cli("drain", "interface", "u0", "--reason", "optics")
    assert done.stdout == "u0 drained: the last resort\n"
    wait_for(lambda: running.used() == {"u1"}, SOON, "the other link only")
    wait_for(lambda: used_by_the_far_end() == {"u1"}, SOON, "at the far end too")
    code, shown = running.left.on_terminal("show", "interfaces")
    assert code == 0
    assert "optics" in shown
    running.left.netns.ip("link", "set", "u1", "down")
    try:
        wait_for(lambda: running.used() == {"u0"}, SOON, "the last resort")
    finally:
        running.left.netns.ip("link", "set", "u1", "up")
    wait_for(lambda: running.used() == {"u1"}, SOON, "the other link only")
    done = running.left.cli("undrain", "interface", "u0")
    assert done.stdout == "u0: in service\n"
    wait_for(lambda: running.used() == set(LINKS), SOON, "both links")
    wait_for(lambda: used_by_the_far_end() == set(LINKS), SOON, "at the far end too")
    assert running.left.cli("drain", "interface", "nope").returncode == 1
    assert running.left.cli("drain", "interface", "u0", "--share", "much").returncode == 2


def test_a_shaper_changes_weights_without_losing_the_adjacency(running: Pair):
    """A tenth of the rate, a tenth of the weight; without the shaper all is equal again."""
    before = transitions(running)
    shape = "tc qdisc replace dev u0 root tbf rate 1gbit burst 1mb limit 4mb"
    running.left.netns.run(shape.split())

    def ratio() -> float:
        weights = {hop.interface: hop.weight for hop in running.view.hops(RIGHT_STUB)}
        return weights["u1"] / weights["u0"] if set(weights) == set(LINKS) else 0

    try:
        wait_for(lambda: abs(ratio() - 10) < 0.2, SOON, "weights of ten to one")
        values = running.left.metrics()
        assert values['fared_link_capacity_bytes_per_second{interface="u0"}'] == 1e9 / 8
    finally:
        running.left.netns.run(["tc", "qdisc", "del", "dev", "u0", "root"])
    wait_for(lambda: ratio() == 1, SOON, "equal weights")
    assert transitions(running) == before
