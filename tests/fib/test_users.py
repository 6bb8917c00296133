"""The prefixes whose routes point at one object of the kernel."""

from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import Prefix
from fared.paths.fib.installed import InstalledState
from fared.paths.fib.settings import FibSettings

PREFIXES = [Prefix(4, number << 8, 24) for number in range(4)]
STEPS = st.lists(st.tuples(st.sampled_from(PREFIXES), st.sampled_from([None, 1, 2])), max_size=80)


@given(STEPS)
def test_users_are_the_routes_that_point_at_an_object_whatever_came_and_went(steps):
    state, pointing = InstalledState(FibSettings()), {}
    for prefix, target in steps:
        if target is None:
            state.drop_route(prefix)
            pointing.pop(prefix, None)
        else:
            state.set_route(prefix, target)
            pointing[prefix] = target
    for target in (1, 2):
        expected = {prefix for prefix, at in pointing.items() if at == target}
        assert (target in state.users) == bool(expected)
        users = state.users.get(target, ())
        assert len(users) == len(expected) == len(list(users))
        assert set(users) == {prefix for prefix in PREFIXES if prefix in users} == expected
