"""Fabrics of fared, FRR and BIRD, one a module; what all tests of a module sent is judged last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from fared.lab.fabric import Fabric
from tests.peers.peers import await_all_paths, await_whole, tell
from tests.peers.recordings import Recordings

_START_DEADLINE = 60.0

Whole = Callable[[Fabric, float], float]
"""Waits so many seconds until all is as it should be; returns when all paths were there."""


class Running(Protocol):
    """How a module starts its fabric."""

    def __call__(
        self, topology: str, whole: Whole = ..., what: str = ...
    ) -> AbstractContextManager[Peers]:
        """Run a topology text: ``with running(TEXT) as peers``; ``what`` is recorded."""


@dataclass
class Peers:
    """A fabric that runs, what its fared nodes send, and how long it took to have all paths."""

    fabric: Fabric
    recordings: Recordings
    start_seconds: float
    whole: Whole


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Within a module, tests that look back on all that happened (``story``) come last."""
    last = [item for item in items if "story" in getattr(item, "fixturenames", ())]
    for item in last:
        module = item.nodeid.partition("::")[0]
        items.remove(item)
        rest = [i for i, other in enumerate(items) if other.nodeid.startswith(f"{module}::")]
        items.insert(rest[-1] + 1 if rest else len(items), item)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Running:
    """Start fabrics, and take them down again."""

    @contextmanager
    def run(
        topology: str, whole: Whole = await_whole, what: str = "ip proto 89"
    ) -> Iterator[Peers]:
        directory: Path = tmp_path_factory.mktemp("peers")
        file = directory / "topology.clab.yml"
        file.write_text(topology)
        fabric = Fabric.from_file(file, directory=directory / "state")
        recordings = None
        try:
            fabric.build()
            recordings = Recordings(fabric, directory / "sent", what)
            begun = time.monotonic()
            fabric.start()
            seconds = whole(fabric, _START_DEADLINE) - begun
            tell(f"all prefixes over all paths {seconds:.2f} s after the first daemon started")
            yield Peers(fabric, recordings, seconds, whole)
        finally:
            if recordings is not None:
                recordings.stop()
            fabric.stop()

    return run


@pytest.fixture
def fabric(peers: Peers) -> Fabric:
    """The module's fabric, with all paths again whatever the test before did.

    Databases may still settle: BIRD originates an LSA once in five seconds only, and FRR a TE LSA.
    """
    await_all_paths(peers.fabric)
    return peers.fabric


@pytest.fixture(scope="module")
def story(peers: Peers) -> Peers:
    """The module's fabric after all other tests of the module."""
    peers.whole(peers.fabric, _START_DEADLINE)
    return peers
