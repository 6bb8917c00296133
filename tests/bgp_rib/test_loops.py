"""Paths that come back to the router that they come from are not used."""

from __future__ import annotations

import pytest

from fared.protocols.bgp.packet.attributes import ClusterList, OriginatorId
from tests.bgp_rib.routers import NET, OWN_AS, ROOT, Router, attributes, peer

ELSEWHERE = int(ROOT) + 1
INTERNAL = peer(1, remote_as=OWN_AS, internal=True)


@pytest.mark.rfc("RFC 4456 §8")
@pytest.mark.parametrize(
    ("named", "used"),
    [
        (OriginatorId(int(ROOT)), False),
        (OriginatorId(ELSEWHERE), True),
        (ClusterList((ELSEWHERE, int(ROOT))), False),
        (ClusterList((ELSEWHERE,)), True),
    ],
)
def test_a_reflected_path_is_used_unless_it_names_this_router(named, used):
    router = Router()
    router.add(INTERNAL)
    router.announce(INTERNAL, [NET], attributes(65100))
    router.announce(INTERNAL, [NET], attributes(65100, more=[named]))
    router.settle()
    # a path that is not used takes the place of the one before
    assert len(router.rib.paths(NET)) == used
