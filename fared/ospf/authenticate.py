"""Authentication of an interface's packets: signed on the way out, judged on the way in.

``fared.ospf.auth`` knows the formats and ``fared.ospf.keyring`` the lifetimes; here are the
sequence numbers that keep old packets from counting twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fared.core.wire import DecodeError
from fared.ospf.auth import AuthInfo, read_auth, sign, verify
from fared.ospf.keyring import TimedKey, accept_keys, send_key
from fared.ospf.packet.packets import AuType

if TYPE_CHECKING:
    from fared.ospf.instance import Instance
    from fared.ospf.interface import Interface

_WORD: Final = 0xFFFFFFFF
_LONG: Final = 0xFFFFFFFFFFFFFFFF
_TYPE_OFFSET: Final = 14
_KEPT: Final = 1024
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
    """What an interface remembers: the highest numbers received, and the key it sent with."""

    __slots__ = ("highest", "in_use")

    def __init__(self) -> None:
        self.highest: dict[Slot, int] = {}
        self.in_use: tuple[object, ...] | None = None


def signed(instance: Instance, interface: Interface, packet: bytes) -> bytes | None:
    """Sign a packet with the key of the moment; None if it must not be sent for want of one."""
    keyring = interface.settings.authentication
    if not keyring:
        interface.authentication.in_use = None
        return packet
    chosen = send_key(keyring, instance.wall)
    _tell_of(instance, interface, chosen)
    if chosen is None:
        instance.counters.errors["auth-no-key"] += 1
        return None
    key = chosen.key
    if key.au_type is AuType.CRYPTOGRAPHIC:
        return sign(packet, key, instance.sequences.word(instance.wall))
    if key.au_type is AuType.CRYPTOGRAPHIC_EXTENDED:
        return sign(packet, key, instance.sequences.long(), interface.address)
    return sign(packet, key)


def _tell_of(instance: Instance, interface: Interface, chosen: TimedKey | None) -> None:
    """Log when another key begins to sign, or the last one has expired."""
    now = None if chosen is None else (chosen.key, chosen.sends(instance.wall))
    state = (now,)
    if interface.authentication.in_use == state:
        return
    interface.authentication.in_use = state
    if chosen is None:
        instance.log(
            "warning", "auth-no-key", interface=interface.name, effect="nothing is sent until one"
        )
        return
    expired = not chosen.sends(instance.wall)
    instance.log(
        "warning" if expired else "info",
        "auth-last-key-expired" if expired else "auth-key-in-use",
        interface=interface.name,
        algorithm=chosen.key.algorithm.value,
        key_id=chosen.key.key_id,
        **({"effect": "used until there is another one"} if expired else {}),
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
    problem = _key_problem(instance, interface, source, payload, info)
    if problem is None and info.au_type in _CRYPTOGRAPHIC:
        problem = _sequence_problem(interface, payload, info)
    return problem


def _reason_of(error: DecodeError) -> str:
    if error.code != "auth":
        return error.code
    return "auth-type" if error.offset == _TYPE_OFFSET else "auth-digest"


def _key_problem(
    instance: Instance, interface: Interface, source: int, payload: bytes, info: AuthInfo
) -> Refusal | None:
    keyring = interface.settings.authentication
    expected = {int(timed.key.au_type) for timed in keyring} or {int(AuType.NULL)}
    if info.au_type not in expected:
        wanted = " or ".join(map(str, sorted(expected)))
        return Refusal("auth-type", f"authentication type {info.au_type}, expected {wanted}")
    if not keyring:
        return None
    cryptographic = info.au_type in _CRYPTOGRAPHIC
    candidates = [
        timed.key
        for timed in accept_keys(keyring, instance.wall)
        if timed.key.au_type == info.au_type
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
            return None
    return problem


def _sequence_problem(interface: Interface, payload: bytes, info: AuthInfo) -> Refusal | None:
    """Compare with the highest number of this neighbor, and remember the new one.

    32-bit numbers must not decrease while the neighbor is known (RFC 2328 §D.3; §10.1 forgets
    them in state Down). 64-bit ones must increase by packet type, and are never forgotten: they
    do not begin again in the life of a router (RFC 7474 §3).
    """
    router_id = int.from_bytes(payload[4:8], "big")
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
