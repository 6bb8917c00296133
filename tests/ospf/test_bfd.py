"""BFD with OSPF neighbors (RFC 5882), and strict mode (RFC 9355)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.bfd import BfdChanged, BfdSettings, BfdStatus, BfdWanted, SessionSettings
from fared.core.wire import DecodeError
from fared.protocols.igp.events import LinkChanged, SendPacket
from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey
from fared.protocols.ospf.auth.link_local import signed_block, verified_flags
from fared.protocols.ospf.auth.signature import sign
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.lls import B_BIT, decode_flags, encode_block
from fared.protocols.ospf.packet.packets import Hello, Options
from tests.ospf.harness import Network
from tests.ospf.scripted import FAST, OURS, THEIRS, Scripted
from tests.packets.damage import attempt
from tests.packets.wireshark import NEEDED, RAW_IP, dissect

REMOTE = THEIRS.to_bytes(4, "big")
NORMAL = replace(FAST, bfd=BfdSettings())
STRICT = replace(FAST, bfd=BfdSettings(strict=True))
HELD = replace(FAST, bfd=BfdSettings(strict=True, hold_time=5.0))
E_L = Options.E | Options.L


def wanted(router: Scripted) -> list[BfdWanted]:
    found = [output for output in router.outputs if isinstance(output, BfdWanted)]
    router.outputs.clear()
    return found


def session(router: Scripted, status: BfdStatus) -> None:
    router.handle(BfdChanged(2, REMOTE, status, "control detection time expired"))


def strict_hello(router: Scripted, *heard: int, flags: int = B_BIT) -> None:
    body = router.hello(*heard, options=E_L)
    router.raw(encode_packet(router.peer, 0, body) + encode_block(flags))


def listed(router: Scripted) -> bool:
    """Whether the last hello lists the neighbor."""
    return router.peer in router.got(Hello)[-1].neighbors


def test_without_bfd_no_session_is_wanted():
    router = Scripted()
    router.to_full()
    assert wanted(router) == []
    assert router.neighbor.bfd is None


@pytest.mark.rfc("RFC 5882 §10.1")
def test_a_session_is_wanted_from_two_way_on():
    router = Scripted(settings=NORMAL)
    router.greet()
    assert wanted(router) == []
    router.greet(router.me)
    (item,) = wanted(router)
    assert (item.ifindex, item.local, item.remote) == (2, OURS.to_bytes(4, "big"), REMOTE)
    assert item.settings == SessionSettings()
    assert router.neighbor.bfd is BfdStatus.DOWN


@pytest.mark.rfc("RFC 5882 §10.2")
def test_a_failed_session_ends_the_adjacency_at_once():
    router = Scripted(settings=NORMAL)
    router.to_full()
    session(router, BfdStatus.UP)
    assert router.neighbor.bfd is BfdStatus.UP
    wanted(router)
    session(router, BfdStatus.DOWN)
    assert router.state == "Down"
    assert [item.settings for item in wanted(router)] == [None]


@pytest.mark.rfc("RFC 5882 §4.2")
@pytest.mark.parametrize("before", [BfdStatus.UP, BfdStatus.DOWN])
def test_a_neighbor_that_disables_bfd_is_no_failure(before):
    router = Scripted(settings=NORMAL)
    router.to_full()
    if before is BfdStatus.UP:
        session(router, BfdStatus.UP)
    session(router, BfdStatus.ADMIN_DOWN)
    assert router.state == "Full"


def test_the_status_of_a_session_that_is_not_wanted_is_ignored():
    router = Scripted(settings=NORMAL)
    router.greet()
    session(router, BfdStatus.DOWN)
    assert router.state == "Init"


def test_a_reload_begins_changes_and_ends_sessions():
    router = Scripted()
    router.to_full()
    wanted(router)
    router.handle(LinkChanged(router.link, NORMAL))
    assert [item.settings for item in wanted(router)] == [SessionSettings()]
    fast = SessionSettings(50_000, 50_000, 5)
    router.handle(LinkChanged(router.link, replace(FAST, bfd=BfdSettings(fast))))
    assert [item.settings for item in wanted(router)] == [fast]
    router.handle(LinkChanged(router.link, FAST))
    assert [item.settings for item in wanted(router)] == [None]
    assert router.state == "Full"


# -- strict mode


@pytest.mark.rfc("RFC 9355 §2", "RFC 5613 §2")
def test_strict_hellos_have_the_b_bit_in_a_link_local_block():
    router = Scripted(settings=STRICT)
    payload = next(o.payload for o in router.outputs if isinstance(o, SendPacket))
    (hello,) = router.got(Hello)
    assert hello.options == E_L
    length = int.from_bytes(payload[2:4], "big")
    # RFC 5613 §2: checksum, three words, extended options and flags
    assert payload[length:][2:] == bytes.fromhex("0003 0001 0004 00000010")
    assert decode_flags(payload[length:]) == B_BIT


@pytest.mark.rfc("RFC 9355 §4")
def test_a_strict_neighbor_waits_in_init_and_is_not_listed():
    router = Scripted(settings=STRICT)
    strict_hello(router)
    assert [item.strict for item in wanted(router)] == [True]
    assert not listed(router)
    strict_hello(router, router.me)
    assert router.state == "Init"
    session(router, BfdStatus.UP)
    assert router.state == "ExStart"
    assert listed(router)


@pytest.mark.rfc("RFC 9355 §4")
def test_a_strict_neighbor_that_is_up_first_is_listed_at_once():
    router = Scripted(settings=STRICT)
    strict_hello(router)
    router.got()
    session(router, BfdStatus.UP)
    assert router.state == "Init"
    assert listed(router)
    strict_hello(router, router.me)
    assert router.state == "ExStart"


@pytest.mark.rfc("RFC 9355 §4")
def test_a_neighbor_without_the_b_bit_does_not_wait():
    router = Scripted(settings=STRICT)
    strict_hello(router, router.me, flags=0)
    assert router.state == "ExStart"
    router = Scripted(settings=STRICT)
    router.greet(router.me)
    assert router.state == "ExStart"


@pytest.mark.rfc("RFC 9355 §4")
def test_a_router_that_is_not_strict_does_not_wait_for_one_that_is():
    router = Scripted(settings=NORMAL)
    strict_hello(router, router.me)
    assert router.state == "ExStart"


@pytest.mark.rfc("RFC 9355 §4")
def test_the_b_bit_counts_in_init_only():
    router = Scripted(settings=STRICT)
    router.to_full()
    strict_hello(router, router.me)
    assert router.state == "Full"


@pytest.mark.rfc("RFC 9355 §4")
def test_a_failed_session_of_a_strict_neighbor_makes_it_wait_again():
    router = Scripted(settings=STRICT)
    strict_hello(router, router.me)
    session(router, BfdStatus.UP)
    session(router, BfdStatus.DOWN)
    assert router.state == "Down"
    strict_hello(router, router.me)
    assert router.state == "Init"


@pytest.mark.rfc("RFC 5882 §4.1")
def test_a_strict_neighbor_that_disables_bfd_is_let_pass():
    # RFC 5882 §4.1: AdminDown must not block the adjacency
    router = Scripted(settings=STRICT)
    strict_hello(router, router.me)
    session(router, BfdStatus.ADMIN_DOWN)
    assert router.state == "ExStart"


@pytest.mark.rfc("RFC 9355 §4")
def test_the_hold_time_passes_before_the_adjacency_forms():
    router = Scripted(settings=HELD)
    strict_hello(router, router.me)
    session(router, BfdStatus.UP)
    router.at(2.0)
    assert router.state == "Init"
    # the session fails meanwhile: the time begins again
    session(router, BfdStatus.DOWN)
    session(router, BfdStatus.UP)
    strict_hello(router, router.me)
    for at in (4.0, 6.0):
        router.at(at)
        strict_hello(router, router.me)
        assert router.state == "Init"
    router.at(7.1)
    assert router.state == "ExStart"


def test_a_reload_to_normal_mode_ends_the_wait():
    router = Scripted(settings=STRICT)
    strict_hello(router, router.me)
    router.handle(LinkChanged(router.link, NORMAL))
    assert router.state == "ExStart"


@pytest.mark.rfc("RFC 5613 §2.2")
def test_a_malformed_block_is_counted_and_means_no_strict_mode():
    router = Scripted(settings=STRICT)
    body = router.hello(router.me, options=E_L)
    router.raw(encode_packet(router.peer, 0, body) + encode_block(B_BIT)[:-2])
    assert router.errors() == {"lls-block": 1}
    assert router.state == "ExStart"


@pytest.mark.rfc("RFC 5613 §2")
@pytest.mark.parametrize(
    "block",
    [
        "",
        "0000",
        "fff60003000100040000001f",  # checksum
        "fffe0001",  # its length exceeds nothing, but there is no TLV
        "ffeb0003000100080000001000",
        "ffe700030001000200100000",
    ],
)
def test_any_block_gives_flags_or_a_decode_error(block):
    attempt(decode_flags, bytes.fromhex(block))


@pytest.mark.rfc("RFC 5613 §2.2")
def test_a_block_with_a_wrong_checksum_or_size_is_refused():
    block = encode_block(B_BIT)
    for wrong in (block[:-1] + b"\x11", block[:3] + b"\x04" + block[4:], block[:6]):
        with pytest.raises(DecodeError):
            decode_flags(wrong)


@pytest.mark.rfc("RFC 5613 §2.3")
def test_other_tlvs_of_a_block_are_skipped():
    body = bytes.fromhex("80010003 aabbcc00 00010004 00000010")
    head = bytes.fromhex("0000 0005")
    words = int.from_bytes(head + body, "big")
    checksum = (0xFFFF - words % 0xFFFF).to_bytes(2, "big")
    assert decode_flags(checksum + head[2:] + body) == B_BIT


# -- strict mode with cryptographic authentication (RFC 5613 §2.5)

ALGORITHMS = [Algorithm.MD5, Algorithm.HMAC_SHA_1, Algorithm.HMAC_SHA_256, Algorithm.HMAC_SHA_512]


def secret(algorithm: Algorithm = Algorithm.HMAC_SHA_256, *, extended: bool = False) -> AuthKey:
    return AuthKey(algorithm, 7, b"a secret", extended)


def guarded(key: AuthKey) -> Scripted:
    """A strict router with this key, whose neighbor has sent no hello yet."""
    return Scripted(settings=replace(STRICT, authentication=(TimedKey(key),)))


def signed_hello(router: Scripted, key: AuthKey, *heard: int, sequence: int = 9) -> bytes:
    body = router.hello(*heard, options=E_L)
    return sign(encode_packet(router.peer, 0, body), key, sequence)


@pytest.mark.rfc("RFC 5613 §2.5")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_authentic_block_means_strict_mode(algorithm: Algorithm):
    key = secret(algorithm)
    router = guarded(key)
    router.raw(signed_hello(router, key, router.me) + signed_block(B_BIT, key, 9))
    assert router.errors() == {}
    assert router.state == "Init"
    session(router, BfdStatus.UP)
    assert router.state == "ExStart"


@pytest.mark.rfc("RFC 5613 §2.5")
@pytest.mark.parametrize(
    "block",
    [
        signed_block(B_BIT, secret(), 8),
        signed_block(B_BIT, AuthKey(Algorithm.HMAC_SHA_256, 7, b"another"), 9),
        signed_block(B_BIT, secret(), 9)[:-1] + b"x",
        encode_block(B_BIT),
        b"",
    ],
    ids=["sequence number", "key", "digest", "no authentication", "no block"],
)
def test_a_block_that_is_not_authentic_is_counted_and_means_no_strict_mode(block: bytes):
    key = secret()
    router = guarded(key)
    router.raw(signed_hello(router, key, router.me) + block)
    assert router.errors() == {"lls-block": 1}
    assert router.state == "ExStart"


@pytest.mark.rfc("RFC 9355 §4", "RFC 5613 §2.5")
@pytest.mark.parametrize("algorithm", [*ALGORITHMS, Algorithm.CLEARTEXT])
def test_two_strict_routers_with_keys_wait_for_their_session(algorithm: Algorithm):
    key = secret(algorithm)
    net = Network()
    net.join(1, 2, replace(STRICT, authentication=(TimedKey(key),)))
    net.run(5.0)
    assert net.states(1) == net.states(2) == ["Init"]
    for number, other in ((1, 2), (2, 1)):
        (neighbor,) = net.neighbors(number)
        remote = neighbor.address.to_bytes(4, "big")
        net.input(number, BfdChanged(neighbor.interface.ifindex, remote, BfdStatus.UP))
        assert other
    net.until(net.all_full, 10.0)
    assert not net.nodes[1].engine.counters.errors


@given(st.binary(max_size=80))
def test_any_bytes_after_a_packet_give_flags_or_a_decode_error(block: bytes):
    attempt(lambda data: verified_flags(data, secret(), 9), block)
    attempt(decode_flags, block)


@NEEDED
def test_wireshark_finds_the_block_behind_the_digest(tmp_path: Path):
    key = secret(Algorithm.MD5)
    router = guarded(key)
    router.raw(signed_hello(router, key, router.me) + signed_block(B_BIT, key, 9))
    sent = [o.payload for o in router.outputs if isinstance(o, SendPacket)]
    head = bytes((0x45, 0xC0)), bytes((0, 0, 0, 0, 1, 89, 0, 0, 10, 128, 0, 0, 224, 0, 0, 5))
    frames = [head[0] + (20 + len(p)).to_bytes(2, "big") + head[1] + p for p in sent]
    dissected = dissect(tmp_path, RAW_IP, frames)
    assert "Malformed" not in dissected
    assert "OSPF LLS Data Block" in dissected
    assert "Crypto Authentication TLV" in dissected
