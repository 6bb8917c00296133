"""The routes of a solver are those of a dictionary, whatever number their prefixes have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import NodeId, Prefix
from fared.rib.model import Route
from fared.rib.prefixes import PrefixTable
from fared.rib.solved import SolvedRoutes
from fared.ted.model import PathType, PrefixReachability

PREFIXES = [Prefix(4, (10 << 24) + (n << 8), 24) for n in range(6)]
ROUTES = [Route(metric, PathType.INTRA_AREA, 0, None, (NodeId(1),)) for metric in range(3)]
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["advertise", "set", "put", "pop", "drop"]),
        st.sampled_from(PREFIXES),
        st.sampled_from(ROUTES),
    ),
    max_size=40,
)


@given(_STEPS)
def test_routes_of_prefixes_with_and_without_a_number_are_those_of_a_dictionary(steps):
    """A range that no router advertises has a route first, and its prefix a number later."""
    table, expected = PrefixTable(), {}
    routes = SolvedRoutes(table)
    for what, prefix, route in steps:
        number = table.number(prefix)
        if what == "advertise":
            table.put(0, NodeId(1), {prefix: PrefixReachability(prefix, 1)})
        elif what == "set":
            routes[prefix] = expected[prefix] = route
        elif what == "pop":
            assert routes.pop(prefix, None) == expected.pop(prefix, None)
        elif number >= 0 and what == "put":
            routes.put({number: route})
            expected[prefix] = route
        elif number >= 0:
            assert routes.drop(number) == (expected.pop(prefix, None) is not None)
        assert {at: routes.get(at) for at in PREFIXES} == {at: expected.get(at) for at in PREFIXES}
        assert (dict(routes), dict(routes.items()), len(routes)) == (
            expected,
            expected,
            len(expected),
        )
        assert list(routes.values()) == [route for _, route in routes.items()]
