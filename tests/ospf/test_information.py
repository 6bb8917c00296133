"""Information of an application in opaque LSAs (RFC 5250) of all areas, or of one."""

from msgspec.structs import replace

from fared.core.ids import BACKBONE, AreaId
from fared.core.information import OPAQUE_TYPE
from fared.protocols.igp.events import InformationOffered, InformationUpdated
from fared.protocols.ospf.settings import AreaSettings
from tests.ospf.harness import FAST, Network

ONE = AreaId(1)


def told(net: Network, number: int) -> list[tuple[int, int, bytes | None]]:
    """Area, key and value of what a router learned."""
    said = net.nodes[number].said(InformationUpdated)
    return [(update.area, update.key, update.value) for update in said]


def test_information_for_one_area_stays_there():
    net = Network()
    areas = {1: (ONE,), 2: (ONE, BACKBONE), 3: (BACKBONE,)}
    for number, own in areas.items():
        found = tuple(map(AreaSettings, own))
        net.add(number, areas=found, information_type=OPAQUE_TYPE)
    net.join(1, 2, replace(FAST, area=ONE))
    net.join(2, 3)
    net.run(20)
    net.input(2, InformationOffered({4: b"both"}, {ONE: {5: b"one"}, BACKBONE: {6: b"two"}}))
    net.run(6)
    assert sorted(told(net, 1)) == [(ONE, 4, b"both"), (ONE, 5, b"one")]
    assert sorted(told(net, 3)) == [(BACKBONE, 4, b"both"), (BACKBONE, 6, b"two")]
    net.input(2, InformationOffered({4: b"both"}, {BACKBONE: {6: b"two"}}))
    net.run(6)
    assert told(net, 1)[2:] == [(ONE, 5, None)]
    assert len(told(net, 3)) == 2
