"""What a reload would do, said before it is done."""

import pytest

from fared.config import Change, Reload, diff, load_text

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
    assert changes(new) == [Change(path, 10, 20, Reload.UPDATE)]


@pytest.mark.parametrize(
    ("new", "action"),
    [
        ("hostname: x\n" + BASE, Reload.UPDATE),
        ("log: {level: debug}\n" + BASE, Reload.UPDATE),
        ("interfaces: {swp1: {bandwidth: 10G}}\n" + BASE, Reload.UPDATE),
        ("adaptive: {enabled: false}\n" + BASE, Reload.UPDATE),
        ("adaptive: {measure-period: 100ms}\n" + BASE, Reload.UPDATE),
        ("fib: {on-exit: keep}\n" + BASE, Reload.UPDATE),
        ("ospf: {areas: {0: {interfaces: {swp1: , swp2: }}}}", Reload.UPDATE),
        ("ospf: {areas: {0: {interfaces: {swp1: }}, 1: {}}}", Reload.UPDATE),
        ("ospf: {areas: {0: {interfaces: {swp1: {passive: true}}}}}", Reload.BOUNCE),
        ("ospf: {areas: {0: {interfaces: {swp1: {prefix-suppression: true}}}}}", Reload.UPDATE),
        (
            "ospf: {prefix-suppression: true, areas: {0: {interfaces: {swp1: }}}}",
            Reload.UPDATE,
        ),
        ("ospf: {areas: {0: {interfaces: {swp1: {dead-interval: 9}}}}}", Reload.BOUNCE),
        ("ospf: {areas: {0: {interfaces: {}}}}", Reload.BOUNCE),
        ("ospf: {areas: {}}", Reload.BOUNCE),
        (
            "ospf: {areas: {0: {ranges: {10.1.0.0/16: }, interfaces: {swp1: }}}}",
            Reload.UPDATE,
        ),
        (
            "ospf: {path-capacity-sub-tlv: 32769, areas: {0: {interfaces: {swp1: }}}}",
            Reload.RESTART,
        ),
        (
            "ospf: {redistribute: {static: }, areas: {0: {interfaces: {swp1: }}}}",
            Reload.UPDATE,
        ),
        ("router-id: 1.1.1.1\n" + BASE, Reload.RESTART),
        ("fib: {group-type: resilient}\n" + BASE, Reload.RESTART),
        ("fib: {max-weight: 255}\n" + BASE, Reload.UPDATE),
        ("fib: {max-group-size: 128}\n" + BASE, Reload.UPDATE),
        ("fib: {max-groups: 128}\n" + BASE, Reload.UPDATE),
        ("api: {http: off}\n" + BASE, Reload.RESTART),
        ("", Reload.RESTART),
    ],
)
def test_each_change_reports_whether_it_updates_bounces_or_restarts(new, action):
    """In place, an adjacency bounces, or only a restart will do."""
    assert [change.action for change in changes(new)] == [action]
