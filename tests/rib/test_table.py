"""The routing table: the best route of each prefix, of one protocol and of several."""

from fared.core.ids import NodeId, Prefix
from fared.rib.model import NextHop, NextHopSet, Route
from fared.rib.table import RoutingTable
from fared.ted.model import PathType

P, Q = Prefix(4, 0x0A000000, 24), Prefix(4, 0x0A000100, 24)


def route(metric: int) -> Route:
    hop = NextHop(2, "s1", 4, metric, NodeId(1), None, None, 1)
    return Route(metric, PathType.INTRA_AREA, 0, NextHopSet((hop,)), (NodeId(1),))


def preferring_ospf() -> RoutingTable:
    table = RoutingTable()
    table.prefer({"ospf": 110, "isis": 115})
    return table


def test_the_routes_of_a_single_protocol_are_the_best():
    table = preferring_ospf()
    first = route(1)
    assert table.take("ospf", {P: first, Q: None}) == {P: first}
    assert table.take("ospf", {P: first}) == {}, "the same object has not changed"
    assert dict(table.routes) == {P: first}
    assert table.take("ospf", {P: None}) == {P: None}
    assert not table.routes


def test_a_second_protocol_takes_over_only_where_the_first_has_no_route():
    table = preferring_ospf()
    ospf, isis, other = route(1), route(2), route(3)
    table.take("ospf", {P: ospf})
    assert table.take("isis", {P: isis, Q: other}) == {Q: other}
    assert dict(table.routes) == {P: ospf, Q: other}
    assert table.candidates(P) == {"ospf": ospf, "isis": isis}
    assert table.take("ospf", {P: None}) == {P: isis}
    assert table.source(P) == "isis"


def test_a_preferred_protocol_that_comes_second_takes_over():
    table = preferring_ospf()
    isis, ospf = route(2), route(1)
    table.take("isis", {P: isis})
    assert table.take("ospf", {P: ospf}) == {P: ospf}
    assert table.candidates(P) == {"isis": isis, "ospf": ospf}
    assert table.prefer({"ospf": 120, "isis": 115}) == {P: isis}
