"""The election of RFC 2328 §9.4: its corner cases one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.protocols.ospf.adjacency.election import Candidate, Elected, elect

pytestmark = pytest.mark.rfc("RFC 2328 §9.4")


def candidate(number: int, priority: int = 1, dr: int = 0, bdr: int = 0) -> Candidate:
    """A router whose address and router id are its number."""
    return Candidate(number, number, priority, dr, bdr)


def test_alone_a_router_is_designated_and_has_no_backup():
    assert elect(candidate(1), []) == Elected(1, 0)


def test_without_dr_and_bdr_the_highest_becomes_designated_and_the_next_backup():
    """The first round makes the winner BDR and therefore DR; the second elects another BDR."""
    others = [candidate(1), candidate(3)]
    # in a router that is not elected, before 3 has declared itself
    assert elect(candidate(2), others) == Elected(3, 3)
    assert elect(candidate(3), [candidate(1), candidate(2)]) == Elected(3, 2)


def test_equal_priorities_are_decided_by_router_id_not_by_address():
    own = Candidate(
        address=9, router_id=1, priority=1, designated_router=0, backup_designated_router=0
    )
    other = Candidate(
        address=2, router_id=5, priority=1, designated_router=0, backup_designated_router=0
    )
    assert elect(own, [other]).designated_router == 2


def test_priority_zero_elects_others_and_never_itself():
    assert elect(candidate(9, 0), [candidate(1), candidate(2)]).designated_router == 2
    assert elect(candidate(9, 0), []) == Elected(0, 0)
    assert elect(candidate(1), [candidate(9, 0, dr=9)]) == Elected(1, 0)


def test_dr_and_bdr_stay_when_routers_of_higher_priority_appear():
    holders = [candidate(1, dr=1, bdr=2), candidate(2, dr=1, bdr=2)]
    assert elect(candidate(9, 255), holders) == Elected(1, 2)


def test_the_backup_becomes_designated_and_is_replaced_when_the_designated_router_is_gone():
    assert elect(candidate(2, dr=5, bdr=2), [candidate(3, dr=5, bdr=2)]) == Elected(2, 3)


def test_of_two_routers_that_declare_themselves_designated_the_higher_one_stays():
    assert elect(candidate(1, dr=1), [candidate(2, dr=2)]) == Elected(2, 1)


numbers = st.integers(1, 6)


@given(
    st.lists(
        st.tuples(numbers, st.integers(0, 3)), min_size=1, max_size=6, unique_by=lambda r: r[0]
    )
)
def test_all_routers_agree_within_a_few_rounds(routers):
    """All routers elect, exchange the results, and elect again until nothing changes."""
    said = {number: Elected() for number, _ in routers}
    priority = dict(routers)

    def speak(number: int) -> Candidate:
        view = said[number]
        return candidate(
            number, priority[number], view.designated_router, view.backup_designated_router
        )

    for _ in range(5):
        for number, _ in routers:
            others = [speak(other) for other, _ in routers if other != number]
            said[number] = elect(speak(number), others)
    eligible = sorted(((p, n) for n, p in routers if p), reverse=True)
    (final,) = set(said.values())
    offices = {final.designated_router, final.backup_designated_router} - {0}
    assert len(offices) == min(2, len(eligible))
    assert all(priority[number] for number in offices)
