"""The fixture by which each test of this folder runs once for each protocol."""

import pytest

from tests.igp.protocols import PROTOCOLS, Protocol


@pytest.fixture(scope="module", params=PROTOCOLS, ids=lambda protocol: protocol.name)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """OSPF, then IS-IS."""
    return request.param
