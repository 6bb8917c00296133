"""Acknowledgments that wait are counted, and of recent LSAs only those in the database are kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fared.protocols.ospf.lsdb import LsaEntry, Lsdb, RecentInstances, Scope
from fared.protocols.ospf.outgoing import InterfaceTx
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, MAX_AGE, instance_of
from tests.ospf.scripted import make_lsa

HEADERS = [make_lsa(number + 1).raw[:LSA_HEADER_SIZE] for number in range(4)]
_STEPS = st.one_of(
    st.lists(st.sampled_from(HEADERS), max_size=3).map(b"".join),
    st.sampled_from([*HEADERS, None]),
)


@given(st.lists(st.tuples(st.booleans(), _STEPS), max_size=20))
def test_as_many_acknowledgments_are_counted_as_are_taken(steps):
    tx = InterfaceTx(lambda: None)
    for taken_back, step in steps:
        if step is None:
            counted = tx.acked
            assert len(tx.take_acks(once=False)) == counted * LSA_HEADER_SIZE
        elif taken_back and step:
            tx.take_back_acks(instance_of(step[:LSA_HEADER_SIZE]))
        else:
            tx.ack(step)
        assert tx.acked * LSA_HEADER_SIZE == sum(map(len, tx.acks))


def test_what_leaves_the_database_is_recent_no_longer_however_many_came_since():
    lsdb, recent = Lsdb(Scope.AS), RecentInstances()
    entries = []
    for number in range(5000):
        lsa = make_lsa(number + 1)
        entries.append(LsaEntry(lsdb, lsa.header.key, lsa.raw, float(number)))
        recent.add(entries[-1])
    held = [entry for entry in recent.copied([entry.raw for entry in entries]) if entry]
    assert 2048 < len(held) < 5000
    assert held == entries[-len(held) :]
    for entry in entries:
        recent.discard(entry)
    assert not any(recent.copied([entry.raw for entry in entries]))


def test_a_flushed_lsa_is_not_kept_as_recent():
    lsdb, recent = Lsdb(Scope.AS), RecentInstances()
    lsa = make_lsa(1, age=MAX_AGE)
    entry = LsaEntry(lsdb, lsa.header.key, lsa.raw, 0.0)
    recent.add(entry)
    assert recent.copied([lsa.raw]) == [None]
    recent.discard(entry)
