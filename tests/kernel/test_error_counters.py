"""Error counters as the kernel writes them."""

from pathlib import Path

import pytest

from fared.core.link_errors import ErrorCounters
from fared.kernel.error_counters import read_error_counters

HEAD = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
"""  # noqa: E501 - the kernel's
LINES = """    lo: 100 10 0 0 0 0 0 0 100 10 0 0 0 0 0 0
  swp1: 900 90 5 7 0 5 0 0 800 80 2 3 0 0 0 0
eth0.1:1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
"""


def test_packets_and_errors_of_both_directions_are_summed(tmp_path: Path):
    file = tmp_path / "dev"
    file.write_text(HEAD + LINES)
    found = read_error_counters(file, drops=False)
    assert found["swp1"] == ErrorCounters(170, 7)
    assert found["lo"] == ErrorCounters(20, 0)
    assert set(found) == {"lo", "swp1", "eth0.1"}


def test_of_dropped_packets_only_those_count_that_this_router_was_to_send(tmp_path: Path):
    """Received ones may be frames of unknown ethertypes, which any host on the link can send."""
    file = tmp_path / "dev"
    file.write_text(HEAD + LINES)
    assert read_error_counters(file, drops=True)["swp1"] == ErrorCounters(170, 10)


@pytest.mark.parametrize(
    "line", ["swp1: 1 2 3", "swp1: " + "x " * 16, "no colon", "swp1:" + "-1 " * 16]
)
def test_other_lines_are_left_out(tmp_path: Path, line: str):
    file = tmp_path / "dev"
    file.write_text(HEAD + line + "\n")
    assert read_error_counters(file, drops=False) == {}


def test_the_kernels_own_file_is_readable():
    assert "lo" in read_error_counters(Path("/proc/net/dev"), drops=False)
