"""What a reload would do, said before it is done."""

import pytest

from fared.config import Action, Change, diff, load_text

BASE = "ospf: {areas: {0: {interfaces: {swp1: {cost: 10}}}}}"


def changes(new: str, old: str = BASE) -> list[Change]:
    return diff(load_text(old), load_text(new))


def test_a_default_written_out_is_no_change():
    """Only meaning counts, not spelling."""
    text = """
ospf: {areas: {0.0.0.0: {type: normal, interfaces: {swp1: {hello-interval: 1s, dead-interval: 4}}}}}
fib: {table: main}
adaptive: {dead-band: 0.05}
"""
    assert changes(text) == []


def test_a_cost_is_updated_in_place():
    """A change names its path, both values and what it takes."""
    path = ("ospf", "areas", "0.0.0.0", "interfaces", "swp1", "cost")
    new = "ospf: {areas: {0: {interfaces: {swp1: {cost: 20}}}}}"
    assert changes(new) == [Change(path, 10, 20, Action.UPDATE_IN_PLACE)]


@pytest.mark.parametrize(
    ("new", "action"),
    [
        ("hostname: x\n" + BASE, Action.UPDATE_IN_PLACE),
        ("log: {level: debug}\n" + BASE, Action.UPDATE_IN_PLACE),
        ("interfaces: {swp1: {bandwidth: 10G}}\n" + BASE, Action.UPDATE_IN_PLACE),
        ("adaptive: {enabled: false}\n" + BASE, Action.UPDATE_IN_PLACE),
        ("adaptive: {measure-period: 100ms}\n" + BASE, Action.UPDATE_IN_PLACE),
        ("fib: {on-exit: keep}\n" + BASE, Action.UPDATE_IN_PLACE),
        ("ospf: {areas: {0: {interfaces: {swp1: , swp2: }}}}", Action.UPDATE_IN_PLACE),
        ("ospf: {areas: {0: {interfaces: {swp1: }}, 1: {}}}", Action.UPDATE_IN_PLACE),
        ("ospf: {areas: {0: {interfaces: {swp1: {passive: true}}}}}", Action.BOUNCE_ADJACENCY),
        ("ospf: {areas: {0: {interfaces: {swp1: {dead-interval: 9}}}}}", Action.BOUNCE_ADJACENCY),
        ("ospf: {areas: {0: {interfaces: {}}}}", Action.BOUNCE_ADJACENCY),
        ("ospf: {areas: {}}", Action.BOUNCE_ADJACENCY),
        (
            "ospf: {areas: {0: {ranges: {10.1.0.0/16: }, interfaces: {swp1: }}}}",
            Action.UPDATE_IN_PLACE,
        ),
        (
            "ospf: {path-capacity-sub-tlv: 32769, areas: {0: {interfaces: {swp1: }}}}",
            Action.RESTART_REQUIRED,
        ),
        (
            "ospf: {redistribute: {static: }, areas: {0: {interfaces: {swp1: }}}}",
            Action.UPDATE_IN_PLACE,
        ),
        ("router-id: 1.1.1.1\n" + BASE, Action.RESTART_REQUIRED),
        ("fib: {group-type: resilient}\n" + BASE, Action.RESTART_REQUIRED),
        ("api: {http: off}\n" + BASE, Action.RESTART_REQUIRED),
        ("", Action.RESTART_REQUIRED),
    ],
)
def test_each_change_says_how_much_it_disturbs(new, action):
    """In place, an adjacency bounces, or only a restart will do."""
    assert [change.action for change in changes(new)] == [action]
