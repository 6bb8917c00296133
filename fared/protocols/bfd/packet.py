"""BFD control packets (RFC 5880 §4): their format, and the checks before any session is looked up.

Intervals are integers of microseconds, as on the wire.
"""

from __future__ import annotations

import enum
import struct

import msgspec

from fared.core.wire import DecodeError

VERSION = 1
_MANDATORY = struct.Struct("!BBBBIIIII")
SIZE = _MANDATORY.size
"""Bytes of the mandatory section."""
YOUR_DISCRIMINATOR = slice(8, 12)
"""In an encoded packet; the length of the mandatory section covers it."""
_AUTH_HEADER = 3
_POLL, _FINAL, _CONTROL_PLANE, _AUTH, _DEMAND, _MULTIPOINT = 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
_MAX_LENGTH = 0xFF


class State(enum.IntEnum):
    """BfdSession states (RFC 5880 §4.1, Sta)."""

    ADMIN_DOWN = 0
    DOWN = 1
    INIT = 2
    UP = 3

    @property
    def label(self) -> str:
        """The name in ``show`` and in logs."""
        return _STATES[self]


_STATES = ("AdminDown", "Down", "Init", "Up")


class Diagnostic(enum.IntEnum):
    """Why a session last left Up (RFC 5880 §4.1, Diag)."""

    NONE = 0
    CONTROL_DETECTION_TIME_EXPIRED = 1
    ECHO_FAILED = 2
    NEIGHBOR_SIGNALED_DOWN = 3
    FORWARDING_PLANE_RESET = 4
    PATH_DOWN = 5
    CONCATENATED_PATH_DOWN = 6
    ADMINISTRATIVELY_DOWN = 7
    REVERSE_CONCATENATED_PATH_DOWN = 8


def diagnostic_label(code: int) -> str:
    """Return the RFC's words for a diagnostic, or the number of an unassigned one."""
    return _DIAGNOSTICS[code] if code < len(_DIAGNOSTICS) else f"diagnostic {code}"


_DIAGNOSTICS = (
    "no diagnostic",
    "control detection time expired",
    "echo function failed",
    "neighbor signaled session down",
    "forwarding plane reset",
    "path down",
    "concatenated path down",
    "administratively down",
    "reverse concatenated path down",
)


class AuthType(enum.IntEnum):
    """AuthSection types (RFC 5880 §4.1)."""

    SIMPLE_PASSWORD = 1
    KEYED_MD5 = 2
    METICULOUS_KEYED_MD5 = 3
    KEYED_SHA1 = 4
    METICULOUS_KEYED_SHA1 = 5


class AuthSection(msgspec.Struct, frozen=True):
    """The authentication section (RFC 5880 §4.1): ``data`` follows the key id."""

    auth_type: int
    key_id: int
    data: bytes


class ControlPacket(msgspec.Struct, frozen=True):
    """A control packet (RFC 5880 §4.1)."""

    state: State
    my_discriminator: int
    your_discriminator: int
    detect_mult: int
    desired_min_tx: int
    required_min_rx: int
    required_min_echo_rx: int = 0
    diagnostic: int = 0
    poll: bool = False
    final: bool = False
    control_plane_independent: bool = False
    demand: bool = False
    multipoint: bool = False
    authentication: AuthSection | None = None


def encode_packet(packet: ControlPacket) -> bytes:
    """Encode a packet. Raises ValueError if a value does not fit into its field."""
    section = b""
    auth = packet.authentication
    if auth is not None:
        section = bytes((auth.auth_type, _AUTH_HEADER + len(auth.data), auth.key_id)) + auth.data
    flags = (
        packet.poll * _POLL
        | packet.final * _FINAL
        | packet.control_plane_independent * _CONTROL_PLANE
        | (auth is not None) * _AUTH
        | packet.demand * _DEMAND
        | packet.multipoint * _MULTIPOINT
    )
    length = SIZE + len(section)
    if length > _MAX_LENGTH or not 0 <= packet.diagnostic < 0x20:
        raise ValueError("a field does not fit")
    try:
        mandatory = _MANDATORY.pack(
            VERSION << 5 | packet.diagnostic,
            packet.state << 6 | flags,
            packet.detect_mult,
            length,
            packet.my_discriminator,
            packet.your_discriminator,
            packet.desired_min_tx,
            packet.required_min_rx,
            packet.required_min_echo_rx,
        )
    except struct.error as error:
        raise ValueError("a field does not fit") from error
    return mandatory + section


def decode_packet(data: bytes) -> ControlPacket:
    """Decode a packet; bytes after its length are ignored. Raises DecodeError."""
    if len(data) < SIZE:
        raise DecodeError("truncated", len(data), f"{len(data)} bytes are no control packet")
    first, second, mult, length, mine, yours, tx, rx, echo = _MANDATORY.unpack_from(data)
    # RFC 5880 §6.8.6, in its order
    if first >> 5 != VERSION:
        raise DecodeError("version", 0, f"version {first >> 5}")
    if length < SIZE or length > len(data):
        raise DecodeError("length", 3, f"length {length} of {len(data)} bytes")
    return ControlPacket(
        state=State(second >> 6),
        my_discriminator=mine,
        your_discriminator=yours,
        detect_mult=mult,
        desired_min_tx=tx,
        required_min_rx=rx,
        required_min_echo_rx=echo,
        diagnostic=first & 0x1F,
        poll=bool(second & _POLL),
        final=bool(second & _FINAL),
        control_plane_independent=bool(second & _CONTROL_PLANE),
        demand=bool(second & _DEMAND),
        multipoint=bool(second & _MULTIPOINT),
        authentication=_authentication(data, length) if second & _AUTH else None,
    )


def _authentication(data: bytes, length: int) -> AuthSection:
    if length < SIZE + _AUTH_HEADER:
        raise DecodeError("auth", SIZE, "no authentication section")
    auth_type, size, key_id = data[SIZE : SIZE + _AUTH_HEADER]
    if size < _AUTH_HEADER or SIZE + size > length:
        raise DecodeError("auth", SIZE + 1, f"authentication length {size}")
    return AuthSection(auth_type, key_id, bytes(data[SIZE + _AUTH_HEADER : SIZE + size]))


def discard_reason(packet: ControlPacket) -> str | None:
    """Return why a packet must be discarded whatever the session (RFC 5880 §6.8.6), else None."""
    if packet.detect_mult == 0:
        return "detect-mult"
    if packet.multipoint:
        return "multipoint"
    if packet.my_discriminator == 0:
        return "my-discriminator"
    if packet.your_discriminator == 0 and packet.state > State.DOWN:
        return "your-discriminator"
    # §6.5: a packet must not have both
    if packet.poll and packet.final:
        return "poll-and-final"
    return None
