"""The routing table: the best route of each prefix, of one protocol and of several."""

from functools import partial
from types import SimpleNamespace

from fared.core.ids import NodeId, Prefix
from fared.paths.rib.model import NextHop, NextHopSet, Route, RouteDelta
from fared.paths.rib.table import RouteRank, RoutingTable
from fared.paths.ted.model import PathType

P, Q = Prefix(4, 0x0A000000, 24), Prefix(4, 0x0A000100, 24)


def route(metric: int, *, connected: bool = False) -> Route:
    hop = NextHop(2, "s1", 4, metric, NodeId(1), None, None, 1)
    hops = None if connected else NextHopSet((hop,))
    return Route(metric, PathType.INTRA_AREA, 0, hops, (NodeId(1),))


class Followed:
    """A table that prefers OSPF, and the protocols that it follows."""

    def __init__(self, *protocols: str) -> None:
        self.table = RoutingTable()
        self.ranks: dict[tuple[str, Prefix], RouteRank] = {}
        self.sources = {
            name: SimpleNamespace(
                routes={},
                rank=partial(self.rank, name),
                preference=lambda _prefix, usual: usual,
            )
            for name in protocols
        }
        for name, source in self.sources.items():
            self.table.follow(name, source)
        self.table.prefer({"ospf": 110, "isis": 115})

    def rank(self, name: str, prefix: Prefix, route: Route) -> RouteRank:
        usual = RouteRank.LOCAL if route.nexthops is None else RouteRank.USUAL
        return self.ranks.get((name, prefix), usual)

    def change(self, name: str, changed: RouteDelta) -> RouteDelta:
        """Let a protocol have other routes; return the changed best ones."""
        routes = {**self.sources[name].routes, **changed}
        self.sources[name].routes = {at: known for at, known in routes.items() if known is not None}
        return self.table.take(changed)


def test_the_routes_of_a_single_protocol_are_the_best():
    alone = Followed("ospf")
    first = route(1)
    assert alone.change("ospf", {P: first}) == {P: first}
    assert alone.table.take(changed := {P: first}) is changed, "nothing is looked up"
    assert alone.table.routes is alone.sources["ospf"].routes
    assert alone.table.source(P) == "ospf"
    assert alone.table.source(Q) is None
    assert alone.table.prefer({"ospf": 1, "isis": 2}) == {}
    assert alone.change("ospf", {P: None}) == {P: None}
    assert not alone.table.routes


def test_a_second_protocol_takes_over_only_where_the_first_has_no_route():
    both = Followed("ospf", "isis")
    table = both.table
    ospf, isis, other = route(1), route(2), route(3)
    both.change("ospf", {P: ospf})
    assert both.change("isis", {P: isis, Q: other}) == {Q: other}
    assert dict(table.routes) == {P: ospf, Q: other}
    assert table.candidates(P) == {"ospf": ospf, "isis": isis}
    assert table.take({P: ospf, Q: other}) == {}, "the same objects have not changed"
    assert both.change("ospf", {P: None}) == {P: isis}
    assert table.source(P) == "isis"
    assert both.change("isis", {P: None, Q: None}) == {P: None, Q: None}
    assert not table.routes


def test_a_preferred_protocol_that_comes_second_takes_over():
    both = Followed("ospf", "isis")
    isis, ospf = route(2), route(1)
    both.change("isis", {P: isis})
    assert both.change("ospf", {P: ospf}) == {P: ospf}
    assert both.table.candidates(P) == {"isis": isis, "ospf": ospf}
    assert both.table.prefer({"ospf": 120, "isis": 115}) == {P: isis}
    assert dict(both.table.routes) == {P: isis}


def test_a_connected_route_comes_before_that_of_a_preferred_protocol():
    both = Followed("ospf", "isis")
    connected = route(0, connected=True)
    both.change("ospf", {P: route(1)})
    assert both.change("isis", {P: connected}) == {P: connected}
    assert both.table.source(P) == "isis"


def test_a_redistributed_route_counts_less_than_any_other_whatever_its_preference():
    both = Followed("ospf", "isis")
    ospf, isis = route(1), route(2)
    both.ranks["ospf", P] = RouteRank.REDISTRIBUTED
    both.change("isis", {P: isis})
    assert both.change("ospf", {P: ospf}) == {}
    assert both.change("isis", {P: None}) == {P: ospf}, "it is better than none"


def test_other_ranks_are_considered_when_the_table_is_told_of_them():
    both = Followed("ospf", "isis")
    ospf, isis = route(1), route(2)
    both.change("ospf", {P: ospf})
    both.change("isis", {P: isis})
    both.ranks["ospf", P] = RouteRank.OWN
    assert both.table.reconsider([Q]) == {}
    assert both.table.reconsider([P, Q]) == {P: isis}
    del both.ranks["ospf", P]
    assert both.table.reconsider() == {P: ospf}
    assert Followed("ospf").table.reconsider([P]) == {}
