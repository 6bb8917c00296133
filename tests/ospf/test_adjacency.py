"""How two routers come to be fully adjacent, and how they part."""

from tests.ospf.harness import DEFAULTS, pair


def test_adjacency_forms_in_milliseconds_with_default_timers():
    """Nothing waits for a hello interval: 10 s hellos, yet Full and in sync in ten round trips."""
    net = pair(settings=DEFAULTS)
    assert net.until(lambda: net.all_full() and net.in_sync()) < 0.010
