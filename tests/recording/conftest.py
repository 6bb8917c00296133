"""A recording of leaf L1 of a small fabric, in which a link fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fared.sim.fabric import clos3
from tests.recording.taped_network import TapedNetwork


@pytest.fixture(scope="session")
def recorded(tmp_path_factory) -> Path:
    """Two segments: the first begins with a new router, the second with a state."""
    directory = tmp_path_factory.mktemp("recorded")
    network = TapedNetwork(directory, 1)
    clos3(2, 2, network=network)
    network.start_all()
    network.run_until_quiet(60)
    network.next_segment("L1")
    network.set_link("L1", "S1", up=False)
    network.run_for(3)
    network.end()
    return directory / "L1"


@pytest.fixture
def recording(recorded, tmp_path) -> Path:
    """A copy of it, to be damaged."""
    return shutil.copytree(recorded, tmp_path / "recording")
