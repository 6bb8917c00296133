"""Daemons that several tests share: starting two takes two seconds, asking them nothing."""

from collections.abc import Iterator

import pytest

from tests.live.daemons import Pair, running_pair


@pytest.fixture(scope="session")
def shared_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two daemons that route; each test leaves them as it found them."""
    with running_pair("s", tmp_path_factory.mktemp("pair")) as pair:
        yield pair


@pytest.fixture
def pair(shared_pair: Pair) -> Pair:
    """The shared daemons, whole."""
    shared_pair.await_routes()
    return shared_pair
