"""Own LSPs from before a restart, forged ones with high numbers, and the last number."""

from __future__ import annotations

import pytest

from fared.protocols.isis.lsdb import MAX_SEQUENCE_NUMBER, ZERO_AGE_LIFETIME, Order, compare
from fared.protocols.isis.pdu.model import PduType
from fared.protocols.isis.pdu.tlvs import LspEntry
from tests.isis.floodnet import LAN, TWO, Network, make_lsp, name

LSP = PduType.L2_LSP


def line(length: int = 3) -> Network:
    net = Network()
    net.add(*range(1, length + 1))
    for number in range(1, length):
        net.join(number, number + 1)
    for number in range(1, length + 1):
        net.say(number, f"I am {number}")
    net.run(5)
    net.sent.clear()
    return net


@pytest.mark.rfc("ISO 10589 §7.3.16.1")
def test_after_a_restart_numbering_goes_on_from_what_the_network_remembers():
    net = line()
    for version in range(10):
        net.say(1, f"version {version}")
        net.run(1)
    assert net[3].known()[name(1)] == (11, "version 9")
    net.restart(1)
    net.say(1, "another life")
    net.run(5)
    assert net.agree()
    assert net[3].known()[name(1)] == (12, "another life")


@pytest.mark.rfc("ISO 10589 §7.3.16.4")
def test_fragments_of_a_former_life_that_are_not_generated_any_more_are_purged():
    net = line()
    for fragment in (1, 2, 3):
        net.say(1, "old", fragment)
    net.run(1)
    net.restart(1)
    net.say(1, "another life")
    net.run(5)
    assert net.agree()
    assert set(net[3].known()) == {name(1), name(2), name(3)}
    assert all(net[3].entry(1, fragment).purged for fragment in (1, 2, 3))


def test_what_comes_back_after_it_was_taken_back_is_purged_again():
    net = line()
    net.say(1, "for a while", 1)
    net.run(1)
    net.down(net.cables[1])  # 3 keeps it
    net.unsay(1, 1)
    net.run(ZERO_AGE_LIFETIME + 10)
    assert net[1].entry(1, 1) is None
    net.up(net.cables[1])
    net.run(5)
    assert net.agree()
    assert name(1, 1) not in net[3].known()


@pytest.mark.rfc("ISO 10589 §7.3.16.1")
@pytest.mark.parametrize("sequence", [2, 1000, MAX_SEQUENCE_NUMBER - 1])
def test_a_forged_lsp_of_ours_is_answered_with_the_next_number(sequence):
    net = line()
    net.inject(3, 1, make_lsp(name(1), sequence, "I am not 1"))
    net.run(5)
    assert net.agree()
    assert net[3].known()[name(1)] == (sequence + 1, "I am 1")


@pytest.mark.rfc("ISO 10589 §7.3.16.1")
def test_a_forged_purge_of_ours_is_answered_with_the_next_number():
    net = line()
    net.inject(3, 1, make_lsp(name(1), 77, lifetime=0))
    net.run(5)
    assert net.agree()
    assert net[3].known()[name(1)] == (78, "I am 1")


ACKNOWLEDGED = 15.0
"""Seconds in which all routers have acknowledged a purge, and its originator is back."""


@pytest.mark.rfc("ISO 10589 §7.3.16.1")
def test_the_last_number_is_purged_and_counting_begins_again_once_all_have_acknowledged():
    """ISO 10589 §7.3.16.1, but without MaxAge, and without ZeroAgeLifetime where it may be."""
    net = line(6)
    net.inject(6, 1, make_lsp(name(1), MAX_SEQUENCE_NUMBER, "I am not 1"))
    net.run(5)
    assert all(name(1) not in r.known() for r in net.routers.values())
    assert net[1].flooding.next_sequence(TWO, name(1)) is None
    net.say(1, "not yet")
    assert name(1) not in net[6].known()
    net.run(ACKNOWLEDGED)
    assert net.agree()
    assert net[6].known()[name(1)] == (1, "not yet")
    assert [r.event for r in net[1].logs] == ["isis-sequence-exhausted"]


@pytest.mark.rfc("ISO 10589 §7.3.16.1")
def test_using_up_the_last_number_ourselves_ends_the_same_way():
    net = line()
    net.inject(3, 1, make_lsp(name(1), MAX_SEQUENCE_NUMBER - 1, "I am not 1"))
    net.run(5)
    assert net[3].known()[name(1)][0] == MAX_SEQUENCE_NUMBER
    net.say(1, "one more")
    net.run(2)
    assert name(1) not in net[3].known()
    net.run(ACKNOWLEDGED)
    assert net[3].known()[name(1)] == (1, "one more")


@pytest.mark.rfc("ISO 10589 §7.3.16.1")
def test_a_lan_acknowledges_nothing_so_that_the_last_number_waits_for_zeroagelifetime():
    net = Network()
    net.add(1, 2, 3)
    net.join(1, 2, 3)
    net.say(1, "I am 1")
    net.run(5)
    net.inject(3, 1, make_lsp(name(1), MAX_SEQUENCE_NUMBER, "I am not 1"))
    net.run(ZERO_AGE_LIFETIME - 10)
    assert all(name(1) not in r.known() for r in net.routers.values())
    net.run(30)
    assert net.agree()
    assert net[3].known()[name(1)] == (1, "I am 1")


@pytest.mark.rfc("ISO 10589 §7.3.16.1")
def test_who_still_has_the_purge_of_the_last_number_discards_the_first_number_until_then():
    """As RFC 2328 §13 (8): to answer with the purge would end the new sequence as well.

    3 and 4 are on a LAN and keep the purge, 2 not.
    """
    net = Network()
    net.add(1, 2, 3, 4)
    net.join(1, 2)
    net.join(2, 3)
    net.join(3, 4, settings=LAN)
    net.say(1, "I am 1")
    net.run(5)
    net.inject(2, 1, make_lsp(name(1), MAX_SEQUENCE_NUMBER, "I am not 1"))
    net.run(ACKNOWLEDGED)
    assert net[2].known() == {name(1): (1, "I am 1")}
    assert net[3].known() == net[4].known() == {}
    net.run(ZERO_AGE_LIFETIME)
    assert net.agree()
    assert net[4].known() == {name(1): (1, "I am 1")}


def test_where_a_system_answers_with_the_purge_the_next_attempt_waits_for_zeroagelifetime():
    """Other implementations keep it for that long, and it is newer than the first number."""
    net = line()
    for lifetime in (1200, 0):
        net.inject(2, 2, make_lsp(name(1), MAX_SEQUENCE_NUMBER, "I am not 1", lifetime))
        net.run(1)
        assert name(1) not in net[2].known()
        net.run(ACKNOWLEDGED)
    assert name(1) not in net[2].known()
    net.run(ZERO_AGE_LIFETIME)
    assert net.agree()
    assert net[3].known()[name(1)] == (1, "I am 1")


def test_a_forger_who_comes_again_wins_another_minute_and_no_more():
    net = line()
    for _ in range(2):
        net.inject(3, 1, make_lsp(name(1), MAX_SEQUENCE_NUMBER, "I am not 1"))
        net.run(5)
        assert name(1) not in net[3].known()
        net.run(ZERO_AGE_LIFETIME + 15)
        assert net[3].known()[name(1)] == (1, "I am 1")


def test_a_router_that_missed_the_purge_of_the_last_number_learns_of_it_when_it_is_back():
    net = line()
    net.down(net.cables[1])
    net.inject(2, 1, make_lsp(name(1), MAX_SEQUENCE_NUMBER, "I am not 1"))
    net.run(ACKNOWLEDGED)
    net.up(net.cables[1])
    net.run(ACKNOWLEDGED)
    assert net.agree()
    assert net[3].known()[name(1)][1] == "I am 1"


def test_a_number_beyond_the_last_is_an_error_of_the_caller():
    net = line()
    with pytest.raises(ValueError, match="sequence number"):
        net[1].flooding.install_own(TWO, make_lsp(name(1), MAX_SEQUENCE_NUMBER + 1))


@pytest.mark.rfc("ISO 10589 §7.3.15.1")
def test_a_neighbor_with_older_lsps_gets_ours():
    net = line()
    net.say(1, "version 2")
    net.run(1)
    net.sent.clear()
    net.inject(2, 1, make_lsp(name(1), 1, "I am 1"))
    net.run(1)
    assert [(n, pdu.sequence_number) for _, n, pdu in net.pdus(LSP)] == [(2, 2)]


@pytest.mark.rfc("ISO 10589 §7.3.16")
@pytest.mark.parametrize(
    ("sequence", "lifetime", "checksum", "order"),
    [
        (6, 100, 1, Order.NEWER),
        (6, 0, 1, Order.NEWER),
        (4, 100, 1, Order.OLDER),
        (4, 0, 1, Order.OLDER),
        (5, 0, 1, Order.NEWER),
        (5, 7, None, Order.SAME),
        (5, 7, 1, Order.CONFUSED),
    ],
)
def test_what_is_newer(sequence, lifetime, checksum, order):
    """ISO 10589 §7.3.16: by sequence number; of equal ones the purge is newer."""
    net = line()
    for version in range(4):
        net.say(1, f"{version}")
    entry = net[1].entry(1)
    assert entry.sequence_number == 5
    heard = LspEntry(name(1), sequence, lifetime, entry.checksum if checksum is None else checksum)
    assert compare(entry, heard) is order


@pytest.mark.rfc("ISO 10589 §7.3.16")
def test_of_two_purges_of_one_number_none_is_newer_whatever_their_checksums():
    net = line()
    net.unsay(1)
    entry = net[1].entry(1)
    assert compare(entry, LspEntry(name(1), 1, 0, 0)) is Order.SAME
    assert compare(entry, LspEntry(name(1), 1, 50, entry.checksum)) is Order.OLDER
