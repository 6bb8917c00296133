"""Daemons that several tests share: to start two takes two seconds."""

from collections.abc import Iterator

import pytest

from tests.live.daemons import Pair, running_pair


@pytest.fixture(scope="session")
def shared_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two daemons that have converged; tests restore what they change."""
    with running_pair("s", tmp_path_factory.mktemp("pair")) as pair:
        yield pair


@pytest.fixture
def pair(shared_pair: Pair) -> Pair:
    """The shared daemons, after both have converged."""
    shared_pair.await_routes()
    return shared_pair
