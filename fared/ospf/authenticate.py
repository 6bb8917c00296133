"""Authentication of an interface's packets: signed on the way out, judged on the way in.

``fared.ospf.auth`` knows the formats and ``fared.core.keys`` the lifetimes; here are the
sequence numbers that keep old packets from counting twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fared.core.keys import AuthKey, TimedKey, accept_keys, equal_keys
from fared.core.wire import DecodeError
from fared.ospf.auth import AuthInfo, au_type_of, read_auth, sign, verify
from fared.ospf.packet.packets import AuType

if TYPE_CHECKING:
    from fared.ospf.instance import Instance
    from fared.ospf.interface import Interface

_WORD: Final = 0xFFFFFFFF
_LONG: Final = 0xFFFFFFFFFFFFFFFF
_TYPE_OFFSET: Final = 14
_KEPT: Final = 1024
_PATIENCE: Final = 1.5
"""Hello intervals; short of the four after which a neighbor that hears us no more is lost."""
_CRYPTOGRAPHIC: Final = (AuType.CRYPTOGRAPHIC, AuType.CRYPTOGRAPHIC_EXTENDED)

Slot = tuple[int, int, int]
"""What a sequence of numbers belongs to: router id, key id, packet type."""


class Refusal(NamedTuple):
    """Why a packet does not count: a reason to count by, and words for the log."""

    reason: str
    what: str


class Sequences:
    """The sequence numbers this router sends (RFC 2328 §D.3, RFC 7474 §3)."""

    __slots__ = ("_long", "_word")

    def __init__(self, first: int) -> None:
        self._word = 0
        self._long = first & _LONG

    def word(self, wall: float) -> int:
        """The 32-bit number of a packet sent now: the wall clock's second, never less than before.

        Equal numbers within a second keep packets valid that overtake one another on the way.
        """
        self._word = max(self._word, int(wall) & _WORD)
        return self._word

    def long(self) -> int:
        """The 64-bit number of the next packet: one more than that of the last."""
        self._long = self._long + 1 & _LONG
        return self._long


class InterfaceAuthentication:
    """What an interface remembers: the highest numbers received, and who signs with which key.

    ``told`` is the last key that was logged, and whether it was valid.
    """

    __slots__ = ("current", "heard", "highest", "told")

    def __init__(self) -> None:
        self.highest: dict[Slot, int] = {}
        self.heard: dict[int, tuple[AuthKey, float]] = {}
        """By router id: the key its last packet was under, and since when it has been that one."""
        self.current: AuthKey | None = None
        self.told: tuple[AuthKey | None, bool] | None = None


def signed(instance: Instance, interface: Interface, packet: bytes) -> bytes | None:
    """Sign a packet with the key of the moment; None if it must not be sent for want of one."""
    keyring = interface.settings.authentication
    if not keyring:
        return packet
    chosen = sending_key(instance, interface, instance.now)
    interface.authentication.current = None if chosen is None else chosen.key
    _tell_of(instance, interface, chosen)
    if chosen is None:
        instance.counters.errors["auth-no-key"] += 1
        return None
    key = chosen.key
    if au_type_of(key) is AuType.CRYPTOGRAPHIC:
        return sign(packet, key, instance.sequences.word(instance.wall))
    if au_type_of(key) is AuType.CRYPTOGRAPHIC_EXTENDED:
        return sign(packet, key, instance.sequences.long(), interface.address)
    return sign(packet, key)


def sending_key(instance: Instance, interface: Interface, now: float) -> TimedKey | None:
    """Choose the key that signs at ``now``; among keys that began together the neighbors decide.

    We stay with the one we use, and leave it when no neighbor signs with it any more: whoever
    has been given only the new key is heard and hears us, at whichever end that happens first.
    Of two routers that would follow each other the one with the higher router id goes first.
    """
    equals = equal_keys(interface.settings.authentication, instance.settings.epoch + now)
    if len(equals) < 2:
        return equals[0] if equals else None
    state = interface.authentication
    choice = next((timed for timed in equals if timed.key == state.current), equals[0])
    live = {neighbor.router_id for neighbor in interface.neighbors.values()}
    heard = {router_id: state.heard[router_id] for router_id in live & state.heard.keys()}
    if any(key == choice.key for key, _ in heard.values()):
        return choice
    patience = _PATIENCE * interface.settings.hello_interval
    for router_id, (key, since) in sorted(heard.items()):
        settled = instance.router_id > router_id or now - since >= patience
        followed = next((timed for timed in equals if timed.key == key), None)
        if settled and followed is not None:
            return followed
    return choice


def _tell_of(instance: Instance, interface: Interface, chosen: TimedKey | None) -> None:
    """Log when another key begins to sign, or the last one has expired."""
    valid = chosen is not None and chosen.sends(instance.wall)
    now = (None if chosen is None else chosen.key, valid)
    if interface.authentication.told == now:
        return
    interface.authentication.told = now
    if chosen is None:
        instance.log(
            "warning", "auth-no-key", interface=interface.name, effect="nothing is sent until one"
        )
        return
    level, event = ("info", "auth-key-in-use") if valid else ("warning", "auth-last-key-expired")
    key = chosen.key
    instance.log(
        level, event, interface=interface.name, algorithm=key.algorithm.value, key_id=key.key_id
    )


def refusal(
    instance: Instance, interface: Interface, source: int, payload: bytes
) -> Refusal | None:
    """Judge the authentication of a received packet (RFC 2328 §D.4, §D.5); None: it is genuine.

    Reasons: ``auth-type``, ``auth-key`` (no such key now, or another password), ``auth-digest``,
    ``auth-sequence``; and the codes of DecodeError where the header cannot be read.
    """
    try:
        info = read_auth(payload)
    except DecodeError as error:
        return Refusal(_reason_of(error), str(error))
    found = _matching_key(instance, interface, source, payload, info)
    if found is None or isinstance(found, Refusal):
        return found
    if info.au_type in _CRYPTOGRAPHIC:
        problem = _sequence_problem(interface, payload, info)
        if problem is not None:
            return problem
    if len(interface.settings.authentication) > 1:
        _note_key(instance, interface, _router_id(payload), found)
    return None


def _note_key(instance: Instance, interface: Interface, router_id: int, key: AuthKey) -> None:
    """Remember which key a neighbor signs with."""
    heard = interface.authentication.heard
    if router_id not in heard and len(heard) >= _KEPT:
        del heard[next(iter(heard))]
    if router_id not in heard or heard[router_id][0] != key:
        heard[router_id] = (key, instance.now)


def _router_id(payload: bytes) -> int:
    return int.from_bytes(payload[4:8], "big")


def _reason_of(error: DecodeError) -> str:
    if error.code != "auth":
        return error.code
    return "auth-type" if error.offset == _TYPE_OFFSET else "auth-digest"


def _matching_key(
    instance: Instance, interface: Interface, source: int, payload: bytes, info: AuthInfo
) -> AuthKey | Refusal | None:
    """Find the key of a packet; None: there is no authentication here, and none in the packet."""
    keyring = interface.settings.authentication
    expected = {int(au_type_of(timed.key)) for timed in keyring} or {int(AuType.NULL)}
    if info.au_type not in expected:
        wanted = " or ".join(map(str, sorted(expected)))
        return Refusal("auth-type", f"authentication type {info.au_type}, expected {wanted}")
    if not keyring:
        return None
    cryptographic = info.au_type in _CRYPTOGRAPHIC
    candidates = [
        timed.key
        for timed in accept_keys(keyring, instance.wall)
        if au_type_of(timed.key) == info.au_type
        and (not cryptographic or timed.key.key_id == info.key_id)
    ]
    what = f"no key with id {info.key_id} is accepted now" if cryptographic else "no password now"
    problem = Refusal("auth-key", what)
    for key in candidates:
        try:
            verify(payload, key, source)
        except DecodeError as error:
            problem = Refusal("auth-digest" if cryptographic else "auth-key", str(error))
        else:
            return key
    return problem


def _sequence_problem(interface: Interface, payload: bytes, info: AuthInfo) -> Refusal | None:
    """Compare with the highest number of this neighbor, and remember the new one.

    32-bit numbers must not decrease while the neighbor is known (RFC 2328 §D.3; §10.1 forgets
    them in state Down). 64-bit ones must increase by packet type, and are never forgotten: they
    do not begin again in the life of a router (RFC 7474 §3).
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
