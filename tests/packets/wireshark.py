"""Packets that fared encodes, decoded by Wireshark's dissector."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import dpkt
import pytest

from fared.paths.te.attributes import TeAttributes

NEEDED = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
ETHERNET, RAW_IP = 1, 101
ATTRIBUTES = TeAttributes(
    te_metric=10,
    max_bandwidth=50e9,
    max_reservable_bandwidth=25e9,
    unreserved_bandwidth=(1e9,) * 8,
    admin_group=0xAB,
    delay=10,
    min_max_delay=(5, 20),
    delay_variation=3,
    loss=0.003,
    residual_bandwidth=40e9,
    available_bandwidth=30e9,
    utilized_bandwidth=10e9,
)
"""Every attribute of a link that both IGPs carry."""


def dissect(directory: Path, linktype: int, frames: Iterable[bytes]) -> str:
    """Return frames as ``tshark -V`` prints them."""
    path = directory / "ours.pcap"
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, linktype=linktype)
        for frame in frames:
            writer.writepkt(frame, ts=1)
    command = ["tshark", "-n", "-r", str(path), "-V"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def assert_sound(dissected: str) -> None:
    """Assert that no frame is malformed and no checksum is wrong."""
    for flaw in ("Malformed", "Expert Info (Error", "Expert Info (Warning", "incorrect"):
        assert flaw not in dissected
    assert "Checksum Status: Bad" not in dissected
