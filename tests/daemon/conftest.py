"""Fixtures of tests of the daemon's sockets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.daemon.stream_ends import Ends


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Two edges of streams on one link."""
    made = Ends()
    try:
        yield made
    finally:
        made.close()
