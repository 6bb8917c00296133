"""Fabrics of fared, FRR and BIRD, one per module; recordings are checked after its other tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

import pytest

from fared.extensions.lab.fabric import Fabric
from tests.peers.peers import await_all_paths, await_whole, tell
from tests.peers.recordings import OSPF, STRANGERS, Recordings, recorded, rejected

_START_DEADLINE = 60.0

Whole = Callable[[Fabric, float], float]
"""Waits so many seconds until all is as it should be; returns when all paths were there."""


class Running(Protocol):
    """The type of the ``running`` fixture."""

    def __call__(
        self, topology: str, whole: Whole = ..., what: str = ...
    ) -> AbstractContextManager[Peers]:
        """Run a topology text: ``with running(TEXT) as peers``; ``what`` is recorded."""


@dataclass
class Peers:
    """A running fabric, the packets of its fared nodes, and the seconds until it had all paths."""

    fabric: Fabric
    recordings: Recordings
    start_seconds: float
    whole: Whole


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Within a module, run the tests that check all recordings and logs (``story``) last."""
    last = [item for item in items if "story" in getattr(item, "fixturenames", ())]
    for item in last:
        module = item.nodeid.partition("::")[0]
        items.remove(item)
        rest = [i for i, other in enumerate(items) if other.nodeid.startswith(f"{module}::")]
        items.insert(rest[-1] + 1 if rest else len(items), item)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Running:
    """Start fabrics, and end them after the test."""

    @contextmanager
    def run(topology: str, whole: Whole = await_whole, what: str = OSPF) -> Iterator[Peers]:
        with recorded(topology, tmp_path_factory.mktemp("peers"), what) as (fabric, recordings):
            begun = time.monotonic()
            fabric.start()
            seconds = whole(fabric, _START_DEADLINE) - begun
            tell(f"all prefixes over all paths {seconds:.2f} s after the first daemon started")
            yield Peers(fabric, recordings, seconds, whole)

    return run


@pytest.fixture
def fabric(peers: Peers) -> Fabric:
    """The module's fabric, with all paths restored after the previous test.

    Databases may still change: BIRD originates an LSA at most once in five seconds, FRR a TE LSA.
    """
    await_all_paths(peers.fabric)
    return peers.fabric


@pytest.fixture(scope="module")
def story(peers: Peers) -> Peers:
    """The module's fabric after all other tests: no router rejected packets of another."""
    peers.whole(peers.fabric, _START_DEADLINE)
    refused = rejected(peers.fabric)
    assert not {name for name, errors in refused.items() if STRANGERS & set(errors)}, refused
    return peers
