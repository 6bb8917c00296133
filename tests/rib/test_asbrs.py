"""The route to an AS boundary router that border routers advertise (RFC 2328 §16.4 (3))."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.ids import BACKBONE
from fared.paths.ted.events import AdvertisedRoute
from fared.paths.ted.model import PathType
from tests.ted.fabrics import Fabric

pytestmark = pytest.mark.rfc("RFC 2328 §16.4 (3)")

INNER = 1


def two_areas(backbone_metric: int, inner_metric: int):
    """Return the routes to ASBR ``X`` of router ``R``, which has a link to it in two areas."""
    backbone, inner = Fabric(), Fabric()
    backbone.connect("R", "X", metric=backbone_metric)
    inner.connect("R", "X", metric=inner_metric)
    solver = backbone.solver("R")
    asbr = backbone.id("X")
    solver.put_block(BACKBONE, asbr, replace(backbone.block("X"), is_asbr=True))
    for name in ("R", "X"):
        solver.put_block(INNER, inner.id(name), inner.block(name))
    solver.put_block(INNER, asbr, replace(inner.block("X"), is_asbr=True))
    solver.set_local_links(INNER, inner.local_links("R"))
    solver.solve()
    return solver.take_advertisements()[1][asbr]


@pytest.mark.rfc("RFC 2328 §16.4.1")
@pytest.mark.parametrize("backbone_metric", [1, 10, 100])
def test_an_intra_area_path_outside_the_backbone_is_preferred_at_any_cost(backbone_metric):
    """RFC 2328 §16.4.1: the summary must advertise the path that packets take."""
    found = two_areas(backbone_metric, inner_metric=10)
    assert found == AdvertisedRoute(10, PathType.INTRA_AREA, (INNER,), None)
