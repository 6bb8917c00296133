"""Classic BPF programs on sockets: the kernel drops packets before they wake this process."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence

_SO_ATTACH_FILTER = 26

LOAD_WORD, LOAD_HALF, LOAD_BYTE = 0x20, 0x28, 0x30
"""Load from an offset, in network byte order."""
LOAD_BYTE_BEHIND = 0x50
"""Load from an offset behind the IPv4 header, of which ``LENGTH_OF_IPV4`` has taken the length."""
LENGTH_OF_IPV4 = 0xB1
"""Take the length of the IPv4 header at an offset."""
AND = 0x54
EQUAL = 0x15
"""Compare with the constant: skip ``then`` instructions if equal, ``otherwise`` if not."""
JUMP = 0x05
"""Skip as many instructions as the constant says."""
RETURN = 0x06
"""Keep this many bytes; 0 drops the packet."""
PACKET_TYPE = 0xFFFF_F000 + 4
"""The offset (SKF_AD_OFF + SKF_AD_PKTTYPE) of the packet type: PACKET_HOST and others."""
RANDOM = 0xFFFF_F000 + 56
"""The offset (SKF_AD_OFF + SKF_AD_RANDOM) of a random word."""
NETWORK_HEADER = 0xFFF0_0000
"""The offset (SKF_NET_OFF) of the IP header, also where the packet begins behind it."""
ALL = 0xFFFF_FFFF

Instruction = tuple[int, int, int, int]
"""Operation, ``then``, ``otherwise``, constant."""

NOTHING: tuple[Instruction, ...] = ((RETURN, 0, 0, 0),)
"""A program that drops every packet."""


def attach_filter(sock: socket.socket, program: Sequence[Instruction]) -> None:
    """Let the socket receive only packets that ``program`` keeps. Raises OSError."""
    packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(packed)
    fprog = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, fprog)
