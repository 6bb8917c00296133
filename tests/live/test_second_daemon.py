"""A daemon started twice with one file: the second ends before its first packet."""

from __future__ import annotations

import pytest

from tests.live.daemons import Pair, run_program

pytestmark = pytest.mark.netns


def test_a_second_daemon_with_the_same_file_is_refused_and_disturbs_nothing(pair: Pair):
    """Also after somebody removed the control socket, which is all that told of the first."""
    left = pair.left
    before = {n["interface"]: n["uptime"] for n in pair.right.show("neighbors")["neighbors"]}
    aside = left.socket.rename(left.directory / "aside.sock")
    try:
        second = run_program("fared", "-c", str(left.file), netns=left.netns)
        assert second.returncode == 1
        assert f"another daemon is running: pid {left.process.pid} holds" in second.stderr
        assert "stage-reached" not in second.stderr + second.stdout
        assert not left.socket.exists(), "it did not come as far as the control socket"
    finally:
        aside.rename(left.socket)
    after = {n["interface"]: n["uptime"] for n in pair.right.show("neighbors")["neighbors"]}
    assert after.keys() == before.keys()
    assert all(after[interface] >= before[interface] for interface in before), "still the same"
    assert left.full() == len(after)
    assert left.complaints() == pair.right.complaints() == []
