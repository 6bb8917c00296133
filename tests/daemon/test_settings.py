"""From the file and the clocks to what the router is told."""

from fared.config import load_text
from fared.daemon.settings import router_settings, with_clock

CONFIG = load_text("ospf: {areas: {0: {interfaces: {lo: {passive: true}}}}}")
WALL_NS = 1_800_000_000_500_000_000


def test_the_engine_learns_what_the_wall_clock_says():
    """Loop time plus epoch is the time of day; 64-bit sequence numbers begin at nanoseconds."""
    settings = with_clock(router_settings(CONFIG, 1, "leaf1"), WALL_NS, 250.0)
    assert settings.ospf.epoch + 250.0 == 1_800_000_000.5
    assert settings.ospf.auth_sequence == WALL_NS
    assert settings.ospf.auth_sequence < 1 << 63
