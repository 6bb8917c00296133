"""Filters that refuse what comes from beyond the link before it wakes this process.

A host far away can send packets to a router's address as fast as it likes; what it can forge and
what not is told by the receiver of each protocol (``igp.events.Unicasts``, RFC 5881 §5). Its checks
remain, for one refused packet in ``SAMPLE`` passes: so a flood is counted and logged.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence

from fared.core.ids import length_mask
from fared.kernel.socketfilter import (
    ALL,
    AND,
    EQUAL,
    JUMP,
    LOAD_BYTE,
    LOAD_WORD,
    NETWORK_HEADER,
    RANDOM,
    RETURN,
    Instruction,
)
from fared.protocols.igp.events import Unicasts

SAMPLE = 1024
"""A power of two."""
_DESTINATION, _SOURCE = NETWORK_HEADER + 16, NETWORK_HEADER + 12
_TTL: Mapping[int, int] = {socket.AF_INET: NETWORK_HEADER + 8, socket.AF_INET6: NETWORK_HEADER + 7}
_MOST_TESTS = 64
"""Of one field: with more addresses on a link, the receiver alone checks the field."""

Program = tuple[Instruction, ...]
REFUSE: Program = ((RETURN, 0, 0, 0),)
_SAMPLED: Program = ((LOAD_WORD, 0, 0, RANDOM), (AND, 0, 0, SAMPLE - 1), (EQUAL, 0, 1, 0))


def unless(tests: Iterable[Program], otherwise: Sequence[Instruction]) -> Program:
    """Go on behind ``otherwise`` if one of the tests succeeds, else with it.

    A test ends with a comparison that skips one instruction if it fails.
    """
    rest = tuple(otherwise)
    for test in reversed(list(tests)):
        rest = (*test, (JUMP, 0, 0, len(rest)), *rest)
    return rest


def equals(load: int, offset: int, value: int) -> Program:
    """Test a field of the IP header."""
    return (load, 0, 0, offset), (EQUAL, 0, 1, value)


def to(destination: int) -> Program:
    """Test the destination of an IPv4 packet."""
    return equals(LOAD_WORD, _DESTINATION, destination)


def admitting(groups: Iterable[int], unicasts: Unicasts | None) -> Program:
    """Refuse what is neither to a group, which no router forwards, nor one of ``unicasts``."""
    if unicasts is None:
        return ()
    networks = [
        (
            (LOAD_WORD, 0, 0, _SOURCE),
            (AND, 0, 0, length_mask(one.prefix_length)),
            (EQUAL, 0, 1, one.network & length_mask(one.prefix_length)),
        )
        for one in unicasts.networks
    ]
    checks = (
        [to(address) for address in unicasts.destinations],
        [equals(LOAD_BYTE, _TTL[socket.AF_INET], ttl) for ttl in unicasts.ttls],
        networks,
    )
    checked: Program = ()
    for tests in checks:
        if 0 < len(tests) <= _MOST_TESTS:
            checked += unless(tests, REFUSE)
    return unless([*(to(group) for group in groups), _SAMPLED], checked)


def with_ttl(family: int, ttl: int) -> Program:
    """A whole program of a UDP socket: refuse other TTLs, or hop limits of IPv6."""
    tests = [equals(LOAD_BYTE, _TTL[family], ttl), _SAMPLED]
    return (*unless(tests, REFUSE), (RETURN, 0, 0, ALL))
