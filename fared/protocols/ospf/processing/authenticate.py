"""Authentication of an interface's packets (RFC 2328 §D.4, §D.5): signing and verification.

``auth.signature`` has the formats, ``igp.keys`` the key lifetimes (§D.3) and ``auth.sequence``
the sequence numbers sent. Those received are checked here, so that replayed packets are rejected.
"""

from __future__ import annotations

from typing import Final

import msgspec

from fared.core.wire import DecodeError
from fared.protocols.igp.keys import AuthKey, TimedKey, accept_keys, equal_keys
from fared.protocols.ospf.auth.link_local import signed_block, verified_flags
from fared.protocols.ospf.auth.signature import AuthInfo, au_type_of, read_auth, sign, verify
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface
from fared.protocols.ospf.packet.codec import packet_length
from fared.protocols.ospf.packet.lls import decode_flags, encode_block
from fared.protocols.ospf.packet.packets import AuType

_TYPE_OFFSET: Final = 14
_AU_TYPE: Final = slice(_TYPE_OFFSET, _TYPE_OFFSET + 2)
_NULL: Final = bytes((0, AuType.NULL))
_KEPT: Final = 1024
_SETTLING_TIME: Final = 1.5
"""In hello intervals: well below the four after which a neighbor that rejects us is lost."""
_CRYPTOGRAPHIC: Final = (AuType.CRYPTOGRAPHIC, AuType.CRYPTOGRAPHIC_EXTENDED)


class Refusal(msgspec.Struct, frozen=True):
    """Why a packet is refused: a reason for the counters, and text for the log."""

    reason: str
    what: str


def signed(
    instance: Instance, interface: Interface, packet: bytes, options: int = 0
) -> bytes | None:
    """Sign a packet with the current key (§D.4); None: no key is valid yet, so it is not sent.

    ``options``: extended ones in a link-local block after it (RFC 5613 §2), 0: there is none.
    """
    keyring = interface.settings.authentication
    plain = encode_block(options) if options else b""
    if not keyring:
        return packet + plain if plain else packet
    chosen = sending_key(instance, interface, instance.process.now)
    interface.authentication.current = None if chosen is None else chosen.key
    _log_key_change(instance, interface, chosen)
    if chosen is None:
        instance.process.counters.errors["auth-no-key"] += 1
        return None
    key = chosen.key
    if au_type_of(key) is AuType.CRYPTOGRAPHIC:
        sequence = instance.sequences.next_32(interface.ifindex, instance.process.wall)
        block = signed_block(options, key, sequence) if options else b""
        return sign(packet, key, sequence) + block
    if au_type_of(key) is AuType.CRYPTOGRAPHIC_EXTENDED:
        number = instance.sequences.next_64(instance.settings.boot_count)
        return sign(packet, key, number, interface.address)
    return sign(packet, key) + plain


def link_local_options(instance: Instance, interface: Interface, payload: bytes) -> int:
    """The extended options in the block after an authentic packet (RFC 5613 §2).

    Raises DecodeError; a block that is not authentic counts as none (§2.5).
    """
    info = read_auth(payload)
    block = payload[packet_length(payload) + info.data_length :]
    if info.au_type not in _CRYPTOGRAPHIC:
        return decode_flags(block)
    problem = DecodeError("auth", 0, "no valid key of an LLS block")
    for key in _candidates(instance, interface, info):
        try:
            return verified_flags(block, key, info.sequence)
        except DecodeError as error:
            problem = error
    raise problem


def sending_key(instance: Instance, interface: Interface, now: float) -> TimedKey | None:
    """Choose the key that signs at ``now``; of keys with equal start times, the neighbors' key.

    The current key stays in use until no neighbor signs with it any more. So routers accept each
    other while a key is replaced, regardless of the end that is configured first. If two routers
    wait for each other, the one with the higher router id changes first.
    """
    # §D.4.3: the valid key with the most recent KeyStartGenerate; several may share that time
    equals = equal_keys(interface.settings.authentication, instance.settings.epoch + now)
    if len(equals) < 2:
        return equals[0] if equals else None
    state = interface.authentication
    choice = next((timed for timed in equals if timed.key == state.current), equals[0])
    live = {neighbor.router_id for neighbor in interface.neighbors.values()}
    received = {router_id: state.received[router_id] for router_id in live & state.received.keys()}
    if any(key == choice.key for key, _ in received.values()):
        return choice
    settling = _SETTLING_TIME * interface.settings.hello_interval
    for router_id, (key, since) in sorted(received.items()):
        settled = instance.router_id > router_id or now - since >= settling
        followed = next((timed for timed in equals if timed.key == key), None)
        if settled and followed is not None:
            return followed
    return choice


def _log_key_change(instance: Instance, interface: Interface, chosen: TimedKey | None) -> None:
    """Log when the signing key changes, or the last one has expired."""
    valid = chosen is not None and chosen.sends(instance.process.wall)
    now = (None if chosen is None else chosen.key, valid)
    if interface.authentication.logged == now:
        return
    interface.authentication.logged = now
    if chosen is None:
        instance.process.log(
            "warning", "auth-no-key", interface=interface.name, effect="no packet is sent"
        )
        return
    # §D.3: the last key stays in use after it expires, with a warning
    level, event = ("info", "auth-key-in-use") if valid else ("warning", "auth-last-key-expired")
    key = chosen.key
    instance.process.log(
        level, event, interface=interface.name, algorithm=key.algorithm.value, key_id=key.key_id
    )


def refusal(
    instance: Instance, interface: Interface, source: int, payload: bytes
) -> Refusal | None:
    """Verify the authentication of a received packet (RFC 2328 §D.5); None: it is authentic.

    Reasons: ``auth-type``, ``auth-key`` (no such key is valid, or the password differs),
    ``auth-digest``, ``auth-sequence``, and the codes of DecodeError for an unreadable header.
    """
    if not interface.settings.authentication and payload[_AU_TYPE] == _NULL:
        return None
    try:
        info = read_auth(payload)
    except DecodeError as error:
        return Refusal(_reason_of(error), str(error))
    found = _matching_key(instance, interface, source, payload, info)
    if found is None or isinstance(found, Refusal):
        return found
    # §D.5.3 (2), here after (3): the number of a forged packet must not be stored
    if info.au_type in _CRYPTOGRAPHIC:
        problem = sequence_problem(interface, payload, info)
        if problem is not None:
            return problem
    if len(interface.settings.authentication) > 1:
        _store_key(instance, interface, _router_id(payload), found)
    return None


def _store_key(instance: Instance, interface: Interface, router_id: int, key: AuthKey) -> None:
    """Store the key that a neighbor signs with."""
    received = interface.authentication.received
    if router_id not in received and len(received) >= _KEPT:
        del received[next(iter(received))]
    if router_id not in received or received[router_id][0] != key:
        received[router_id] = (key, instance.process.now)


def _router_id(payload: bytes) -> int:
    return int.from_bytes(payload[4:8], "big")


def _reason_of(error: DecodeError) -> str:
    if error.code != "auth":
        return error.code
    return "auth-type" if error.offset == _TYPE_OFFSET else "auth-digest"


def _matching_key(
    instance: Instance, interface: Interface, source: int, payload: bytes, info: AuthInfo
) -> AuthKey | Refusal | None:
    """Find the key of a packet; None: neither the interface nor the packet has authentication."""
    # RFC 2328 §8.2: the AuType of the interface; during a key change, of one of its keys
    keyring = interface.settings.authentication
    expected = {int(au_type_of(timed.key)) for timed in keyring} or {int(AuType.NULL)}
    if info.au_type not in expected:
        wanted = " or ".join(map(str, sorted(expected)))
        return Refusal("auth-type", f"authentication type {info.au_type}, expected {wanted}")
    if not keyring:
        return None
    cryptographic = info.au_type in _CRYPTOGRAPHIC
    what = f"no valid key with id {info.key_id}" if cryptographic else "no valid password"
    problem = Refusal("auth-key", what)
    for key in _candidates(instance, interface, info):
        try:
            verify(payload, key, source)
        except DecodeError as error:
            problem = Refusal("auth-digest" if cryptographic else "auth-key", str(error))
        else:
            return key
    return problem


def _candidates(instance: Instance, interface: Interface, info: AuthInfo) -> list[AuthKey]:
    """The keys that a packet may be signed with."""
    # §D.5.3 (1): the key with this id, if valid for reception; §D.5.2: any valid password
    return [
        timed.key
        for timed in accept_keys(interface.settings.authentication, instance.process.wall)
        if au_type_of(timed.key) == info.au_type
        and (info.au_type not in _CRYPTOGRAPHIC or timed.key.key_id == info.key_id)
    ]


def sequence_problem(interface: Interface, payload: bytes, info: AuthInfo) -> Refusal | None:
    """Compare a sequence number with the highest one of this neighbor, and store it.

    32-bit numbers must not decrease (RFC 2328 §D.5.3 (2)), and start at zero again once the
    neighbor is Down (§D.3). 64-bit numbers must increase for each packet type, and are never
    cleared: they increase for as long as a router exists (RFC 7474 §2).
    """
    router_id = _router_id(payload)
    highest = interface.authentication.highest
    if info.au_type == AuType.CRYPTOGRAPHIC:
        slot = (router_id, -1, 0)
        known = any(n.router_id == router_id for n in interface.neighbors.values())
        least = highest.get(slot, 0) if known else 0
    else:
        slot = (router_id, info.key_id, payload[1])
        least = highest.get(slot, -1) + 1
    if info.sequence < least:
        return Refusal(
            "auth-sequence", f"sequence number {info.sequence}, expected {least} or more"
        )
    highest.pop(slot, None)
    highest[slot] = info.sequence
    if len(highest) > _KEPT:
        del highest[next(iter(highest))]
    return None
