"""An area border router in an area that virtual links of others cross (RFC 2328 §12.4.3)."""

import pytest
from msgspec.structs import replace

from fared.core.ids import BACKBONE, AreaId, Prefix, parse_dotted, parse_prefix
from fared.paths.ted.events import AdvertisedRoute, RoutesComputed
from fared.paths.ted.model import PathType
from fared.protocols.igp.events import LinkChanged
from fared.protocols.ospf.packet.bodies import B_BIT, V_BIT, RouterLsa
from fared.protocols.ospf.packet.body import encode_router_lsa
from fared.protocols.ospf.packet.lsa import LsType
from fared.protocols.ospf.settings import AreaSettings, RangeSettings
from tests.ospf.harness import FAST, make_link
from tests.ospf.scripted import Scripted, make_lsa, update

pytestmark = pytest.mark.rfc("RFC 2328 §12.4.3")

ONE = AreaId(1)
RANGE, PART = parse_prefix("10.20.0.0/16"), parse_prefix("10.20.3.0/24")


class Border(Scripted):
    """It is in area 1 with the scripted neighbor, and in the backbone, with a range there."""

    def __init__(self) -> None:
        areas = (AreaSettings(BACKBONE, ranges=(RangeSettings(RANGE),)), AreaSettings(ONE))
        settings = replace(FAST, area=ONE, router_dead_interval=60)
        super().__init__(settings=settings, areas=areas)
        inside = make_link(3, parse_dotted("10.20.9.1"), length=24)
        self.handle(LinkChanged(inside, replace(FAST, passive=True)))
        self.to_full()
        self.sequence = 0x80000001 - (1 << 32)

    def send(self, body, **header) -> None:
        super().send(body, **{"area": ONE, **header})

    def computed(self, *parts: Prefix) -> None:
        route = AdvertisedRoute(20, PathType.INTRA_AREA, (BACKBONE,), None)
        self.handle(RoutesComputed(dict.fromkeys(parts, route), {}))

    def neighbor_sets(self, flags: int) -> None:
        self.at(self.now + 2)
        body = encode_router_lsa(RouterLsa(flags, ()))
        self.send(update(make_lsa(self.peer, self.sequence, body=body)))
        self.sequence += 1
        self.at(self.now + 6)

    def summaries(self) -> set[int]:
        """The networks that it advertises into area 1."""
        return {
            entry.key.link_state_id
            for entry in self.engine.instance.areas[ONE].lsdb
            if entry.key.ls_type == LsType.SUMMARY_NETWORK and entry.age(self.now) < 3600
        }


@pytest.mark.parametrize("components", [{PART}, {PART, RANGE}])
def test_ranges_of_the_backbone_are_ignored_in_a_transit_area(components):
    """Inside, packets of a virtual link must take the same way as at its ends."""
    border = Border()
    border.computed(*components)
    border.neighbor_sets(B_BIT)
    assert border.summaries() == {RANGE.network}
    border.neighbor_sets(B_BIT | V_BIT)
    assert border.summaries() == {part.network for part in components}
    border.neighbor_sets(B_BIT)
    assert border.summaries() == {RANGE.network}
