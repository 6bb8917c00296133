"""LSPs age, are refreshed, expire and are purged; only authorized purges are accepted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey
from fared.protocols.isis.lsdb import ZERO_AGE_LIFETIME
from fared.protocols.isis.pdu.codec import decode_pdu, encode_pdu, read_pdu
from fared.protocols.isis.pdu.model import PduType
from fared.protocols.isis.pdu.tlvs import LspEntries, PurgeOriginator, of_type
from tests.isis.floodnet import TWO, Network, make_lsp, name

LSP = PduType.L2_LSP
PSNP = PduType.L2_PSNP
KEY = AuthKey(Algorithm.HMAC_SHA_256, 1, b"secret")
KEYS = ((2, (TimedKey(KEY),)),)


def ring(*, extra=(), **settings) -> Network:
    """Routers 1 to 4 in a ring, each with an LSP, synchronized."""
    net = Network()
    net.add(1, 2, 3, 4, **settings)
    for a, b in ((1, 2), (2, 3), (3, 4), (4, 1), *extra):
        net.join(a, b)
    for number in (1, 2, 3, 4):
        net.say(number, f"I am {number}")
    net.run(5)
    net.sent.clear()
    return net


def isolate(net: Network, number: int) -> None:
    """Disconnect a router without an event in the databases of its neighbors."""
    for cable in net.cables:
        if any(n == number for n, _ in cable.ends):
            net.down(cable)
    net.run(1)


@pytest.mark.rfc("ISO 10589 §7.3.5")
def test_own_lsps_are_refreshed_in_good_time():
    net = ring()
    net.run(3000)
    assert 3 <= len(net[1].told("refresh")) <= 5
    assert net[3].entry(1).sequence_number == 1 + len(net[1].told("refresh"))
    assert net.agree()
    assert not any(r.counts["expired"] for r in net.routers.values())


@pytest.mark.rfc("ISO 10589 §7.3.16.4")
def test_the_lsps_of_a_router_that_died_are_purged_when_they_expire_and_then_forgotten():
    net = ring()
    isolate(net, 4)
    net.run(1230)
    assert [name(4)] == [identifier for _, identifier, _ in net[1].told("purged")]
    entry = net[1].entry(4)
    assert entry.purged
    assert entry.remaining_lifetime(net.now) == 0
    assert len(of_type(entry.lsp.tlvs, PurgeOriginator)) == 1
    assert sum(net[n].counts["purges-originated"] for n in (1, 2, 3)) <= 2
    net.run(ZERO_AGE_LIFETIME + 20)
    for number in (1, 2, 3):
        assert net[number].entry(4) is None
        assert ("removed", name(4), 1) in net[number].calls
    assert set(net[1].known()) == {name(1), name(2), name(3)}


def test_an_own_lsp_that_is_not_refreshed_any_more_dies_too():
    net = ring()
    net[1].texts.clear()
    net.run(1300)
    assert net[1].told("refresh")
    assert name(1) not in net[3].known()


@pytest.mark.rfc("RFC 7987")
def test_a_lifetime_garbled_on_its_way_does_not_end_an_lsp_early():
    """RFC 7987: the lifetime of a received LSP is raised to that of our own."""
    net = ring()
    net.inject(2, 1, make_lsp(name(9), 5, "far away", lifetime=2))
    net.run(100)
    assert net[3].known()[name(9)] == (5, "far away")
    assert net[3].entry(9).remaining_lifetime(net.now) == pytest.approx(1100, abs=3)


def test_a_long_lifetime_is_kept():
    net = ring()
    net.inject(2, 1, make_lsp(name(9), 5, "for long", lifetime=65535))
    net.run(10000)
    assert net[3].known()[name(9)] == (5, "for long")
    assert net[3].entry(9).remaining_lifetime(net.now) == pytest.approx(55535, abs=10)


def test_taking_back_an_lsp_takes_it_back_everywhere():
    net = ring()
    net.say(1, "more", 1)
    net.run(1)
    net.unsay(1, 1)
    net.run(1)
    for router in net.routers.values():
        assert name(1, 1) not in router.known()
        assert router.entry(1, 1).purged
        assert len(router.entry(1, 1).raw) == 27 + 9  # the header and the purge originator
    net.run(ZERO_AGE_LIFETIME + 1)
    assert all(r.entry(1, 1) is None for r in net.routers.values())
    net.say(1, "again", 1)
    net.run(1)
    assert net[3].known()[name(1, 1)] == (2, "again")


def test_taking_back_twice_or_what_never_was_does_nothing():
    net = ring()
    assert net[1].flooding.purge_own(TWO, name(1, 7)) is None
    net[1].flooding.purge_own(TWO, name(1))
    assert net[1].flooding.purge_own(TWO, name(1)) is None


@pytest.mark.rfc("ISO 10589 §7.3.16.4")
def test_a_purge_is_flooded_once_over_each_link_and_generated_by_nobody_else():
    net = ring()
    net.inject(1, 1, make_lsp(name(9), 3, "somebody"))
    net.run(1)
    net.sent.clear()
    net.inject(1, 1, make_lsp(name(9), 3, lifetime=0))
    net.run(50)
    purges = net.pdus(LSP)
    assert all(pdu.remaining_lifetime == 0 for _, _, pdu in purges)
    assert len(purges) <= 6
    assert all(r.entry(9).purged for r in net.routers.values())
    assert not any(r.counts["purges-originated"] for r in net.routers.values())
    assert all(r.flags() == 0 for r in net.routers.values())


@pytest.mark.rfc("ISO 10589 §7.3.16.4")
def test_a_purge_of_what_nobody_knows_is_acknowledged_and_not_kept():
    net = ring()
    net.inject(1, 1, make_lsp(name(9), 3, lifetime=0))
    net.run(1)
    assert net[1].entry(9) is None
    assert net.pdus(LSP) == []
    ((_, sender, ack),) = net.pdus(PSNP)
    (tlv,) = of_type(ack.tlvs, LspEntries)
    assert sender == 1
    assert [(e.lsp_id, e.sequence_number, e.remaining_lifetime) for e in tlv.entries] == [
        (name(9), 3, 0)
    ]
    assert net[1].flags() == 0


@pytest.mark.rfc("ISO 10589 §7.3.15.1")
def test_a_late_copy_of_a_purged_lsp_is_answered_with_the_purge():
    net = ring()
    net.inject(1, 1, make_lsp(name(9), 3, "somebody"))
    net.run(1)
    net.inject(1, 1, make_lsp(name(9), 3, lifetime=0))
    net.run(5)
    net.sent.clear()
    net.inject(1, 1, make_lsp(name(9), 3, "somebody"))
    net.run(1)
    assert [(n, pdu.remaining_lifetime) for _, n, pdu in net.pdus(LSP)] == [(1, 0)]
    assert all(r.entry(9).purged for r in net.routers.values())


def test_after_a_purge_a_newer_lsp_lives():
    net = ring()
    net.inject(1, 1, make_lsp(name(9), 3, "somebody"))
    net.inject(1, 1, make_lsp(name(9), 3, lifetime=0))
    net.inject(1, 1, make_lsp(name(9), 4, "back"))
    net.run(100)
    assert net.agree()
    assert net[3].known()[name(9)] == (4, "back")


@pytest.mark.rfc("ISO 10589 §7.3.16.2")
def test_two_lsps_of_one_number_are_both_purged_and_their_router_answers_with_a_third():
    """ISO 10589 §7.3.16.2"""
    net = ring()
    net.inject(2, 1, make_lsp(name(3), 1, "I am not 3"))
    net.run(5)
    assert net[2].counts["confused"] == 1
    assert net.agree()
    assert net[1].known()[name(3)] == (2, "I am 3")


@pytest.mark.rfc("ISO 10589 §7.3.16.2")
def test_an_lsp_of_ours_with_other_contents_makes_us_issue_it_again():
    net = ring()
    net.inject(3, 1, make_lsp(name(3), 1, "I am not 3"))
    net.run(5)
    assert net.agree()
    assert net[1].known()[name(3)] == (2, "I am 3")


def test_a_storm_of_purges_does_no_lasting_harm():
    net = ring()
    for round_ in range(200):
        for victim in (1, 2, 3, 4):
            sequence = net[victim].entry(victim).sequence_number
            net.inject(1 + round_ % 4, 1, make_lsp(name(victim), sequence, lifetime=0))
        net.run(0.01)
    net.run(10)
    assert net.agree()
    assert set(net[1].known()) == {name(n) for n in (1, 2, 3, 4)}
    assert all(r.flags() == 0 for r in net.routers.values())
    sent = len(net.pdus(LSP))
    net.run(100)
    assert len(net.pdus(LSP)) == sent


@pytest.mark.rfc("RFC 5304 §2", "RFC 6232")
def test_with_authentication_a_purge_is_signed_by_whoever_purges():
    net = ring(lsp_authentication=KEYS)
    isolate(net, 4)
    net.run(1230)
    purges = [pdu for _, _, pdu in net.pdus(LSP) if pdu.lsp_id == name(4)]
    assert purges
    assert all(r.entry(4).purged for n, r in net.routers.items() if n != 4)
    assert net[1].instance.process.counters.errors["auth"] == 0


@pytest.mark.rfc("RFC 6233")
def test_with_authentication_nobody_can_make_a_purge_of_an_lsp_he_has_seen():
    """RFC 6233: the digest does not cover the lifetime, but a purge must have no contents."""
    net = ring(lsp_authentication=KEYS)
    seen = net[2].entry(3).raw
    forged = seen[:10] + bytes(2) + seen[12:]
    assert read_pdu(forged).data == forged
    assert decode_pdu(forged).remaining_lifetime == 0
    net.inject(2, 1, forged)
    net.inject(2, 1, make_lsp(name(3), 1, lifetime=0))
    net.run(5)
    assert net[2].known()[name(3)] == (1, "I am 3")
    assert net[2].instance.process.counters.errors["auth"] == 2


@pytest.mark.rfc("RFC 5304 §2")
def test_sequence_number_pdus_are_signed_and_leave_room_for_it():
    net = Network()
    net.add(1, 2, lsp_authentication=KEYS)
    for fragment in range(250):
        net[1].say("x", fragment)
    net.join(1, 2, mtu=600)
    net.run(2)
    assert net.agree()
    assert net[2].instance.process.counters.errors["auth"] == 0
    assert max(len(output.payload) for _, _, output in net.sent) <= 597


@pytest.mark.rfc("RFC 5310 §3.4")
def test_without_a_valid_key_nothing_leaves_unsigned():
    later = ((2, (TimedKey(KEY, send_start=1e9),)),)
    net = Network()
    net.add(1, 2, lsp_authentication=later)
    net.join(1, 2)
    net.run(1)
    assert net.pdus(PduType.L2_CSNP) == []
    assert net[1].instance.process.counters.errors["no-send-key"] > 0


def test_when_the_key_changes_our_lsps_are_signed_anew():
    """A router that restarts after the old key has expired receives the whole database."""
    new = AuthKey(Algorithm.HMAC_SHA_512, 2, b"other")
    both = (
        (2, (TimedKey(KEY, send_end=100.0, accept_end=150.0), TimedKey(new, send_start=100.0))),
    )
    net = ring(lsp_authentication=both)
    net.run(200)
    assert net[3].known()[name(1)] == (2, "I am 1")
    net.restart(2, lsp_authentication=both)
    net.run(5)
    assert set(net[2].known()) == {name(1), name(3), name(4)}
    assert net[2].instance.process.counters.errors["auth"] == 0


def test_other_keys_in_the_settings_make_us_sign_our_lsps_anew():
    net = ring()
    for router in net.routers.values():
        before = router.instance.settings
        router.instance.process.now = net.now
        router.instance.settings = replace(before, lsp_authentication=KEYS)
        router.flooding.settings_changed(before)
        router.flooding.settings_changed(router.instance.settings)
    net.send_all()
    net.run(5)
    assert net.agree()
    assert net[3].known()[name(1)] == (2, "I am 1")


def test_purges_without_authentication_may_have_contents():
    net = ring()
    net.inject(2, 1, make_lsp(name(9), 1, "alive"))
    dead = replace(make_lsp(name(9), 1, "alive"), remaining_lifetime=0)
    net.inject(2, 1, encode_pdu(dead))
    net.run(5)
    assert all(name(9) not in r.known() for r in net.routers.values())
