"""The running configuration after a reload: the new file, without changes that need a restart."""

from __future__ import annotations

import pytest

from fared.config import load_text, merged

OSPF = "ospf: {areas: {0: {interfaces: {swp1: {cost: %d}}}}}"
ISIS = "isis: {net: %s, level: %s, interfaces: {swp1: {metric: %d}}}"
NET, OTHER_NET = "49.0001.0102.5500.0001.00", "49.0002.0102.5500.0002.00"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("router-id: 10.0.0.1", "router-id: 10.0.0.2"),
        ("fib: {table: 100}", "fib: {table: 101}"),
        ("fib: {metric: 20}", "fib: {metric: 30}"),
        ("fib: {group-type: hash-threshold}", "fib: {group-type: resilient}"),
        ("api: {socket: /run/a.sock}", "api: {socket: /run/b.sock}"),
        ("api: {http: '127.0.0.1:9547'}", "api: {}"),
    ],
)
def test_settings_that_need_a_restart_are_kept_and_the_rest_is_applied(old, new):
    running = load_text(f"{old}\n{OSPF % 10}")
    after = merged(running, load_text(f"{new}\n{OSPF % 20}"))
    key = old.partition(":")[0].replace("-", "_")
    assert getattr(after, key) == getattr(running, key)
    assert after.ospf_interface("swp1")[1].cost == 20


def test_the_treatment_of_routes_at_exit_may_change():
    after = merged(load_text(OSPF % 1), load_text("fib: {on-exit: keep, table: 9}\n" + OSPF % 1))
    assert (after.fib.on_exit, after.fib.table) == ("keep", load_text(OSPF % 1).fib.table)


@pytest.mark.parametrize(
    ("old", "new"), [(OSPF % 1, ISIS % (NET, "level-2", 1)), (ISIS % (NET, "level-2", 1), OSPF % 1)]
)
def test_protocols_are_added_and_removed_by_a_restart_only(old, new):
    running = load_text(old)
    after = merged(running, load_text(new))
    assert (after.ospf, after.isis) == (running.ospf, running.isis)


def test_title_and_levels_of_isis_need_a_restart_and_metrics_do_not():
    running = load_text(ISIS % (NET, "level-2", 10))
    after = merged(running, load_text(ISIS % (OTHER_NET, "level-1-2", 20)))
    assert running.isis is not None
    assert after.isis is not None
    assert (after.isis.net, after.isis.level) == (running.isis.net, running.isis.level)
    assert after.isis.interfaces["swp1"].metric == 20


def test_a_file_without_changes_is_the_running_configuration():
    running = load_text("router-id: 10.0.0.1\n" + OSPF % 10)
    assert merged(running, load_text("router-id: 10.0.0.1\n" + OSPF % 10)) == running
