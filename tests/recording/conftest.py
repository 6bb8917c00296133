"""A recording of leaf L1 of a small fabric, in which a link fails."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.extensions.sim.fabric import clos3
from tests.recording.taped_network import TapedNetwork


@pytest.fixture(scope="session", autouse=True)
def keys(tmp_path_factory) -> Iterator[Path]:
    """The directory of the key that signs the states of these tests."""
    directory = tmp_path_factory.mktemp("keys")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATE_DIRECTORY", str(directory))
        yield directory


@pytest.fixture(scope="session")
def recorded(tmp_path_factory, keys) -> Path:
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
