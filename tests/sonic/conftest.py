from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sonic.redis_server import Server


@pytest.fixture
def server(tmp_path, request) -> Iterator[Server]:
    """Redis with keyspace notifications as ``param`` says; by default without."""
    made = Server(tmp_path, notify=getattr(request, "param", ""))
    yield made
    made.stop()
