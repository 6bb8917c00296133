"""Forged OSPF packets with valid checksums: mutations, and LSAs with other ids and ages."""

from __future__ import annotations

import random
from collections.abc import Iterable

from fared.core.checksum import fletcher16, internet_checksum
from tests.packets.forged import other_body

LSU = 4
HEADER, LSA_HEADER = 24, 20
_ACK, _REQUEST, _DD, _LSA_TYPES = 5, 3, 2, (1, 2, 3, 4, 5, 6, 7, 9, 10, 11)
_AGES = (0, 0, 1, 899, 901, 3599, 3600, 3601, 0x8000, 0x8E10, 0xFFFF)
_NUMBERS = (0x80000000, 0x80000001, 0x80000002, 0, 0x7FFFFFFE, 0x7FFFFFFF, 0xFFFFFFFF)
_STEPS = (-1, 0, 0, 1, 1, 2, 100)


def repair(rng: random.Random, packet: bytes) -> bytes:
    """Make the checksums right again, of LSAs and of the packet, from another router's id."""
    data = bytearray(packet.ljust(HEADER, b"\0"))
    if rng.random() < 0.9:
        data[0] = 2
        data[1] = data[1] if 1 <= data[1] <= 5 else rng.randrange(1, 6)
        data[2:4] = len(data).to_bytes(2, "big")
        data[8:12] = bytes(4)
        data[14:16] = bytes(2)
    if data[1] == LSU:
        for offset, length in _lsas(data):
            _sign(data, offset, length)
    return sent_by(bytes((10, 254)) + rng.randbytes(2), data)


def sent_by(router_id: bytes, packet: bytes, area: int | None = None) -> bytes:
    """Put a router id, and an area, into a packet and the checksum that goes with it."""
    data = bytearray(packet)
    data[4:8] = router_id
    if area is not None:
        data[8:12] = area.to_bytes(4, "big")
    data[12:14] = bytes(2)
    checksum = internet_checksum(bytes(data[:16] + data[24:]))
    data[12:14] = checksum.to_bytes(2, "big")
    return bytes(data)


def _lsas(data: bytes | bytearray) -> Iterable[tuple[int, int]]:
    """Offset and length of each LSA of an update."""
    offset = HEADER + 4
    while offset + LSA_HEADER <= len(data):
        length = int.from_bytes(data[offset + 18 : offset + 20], "big")
        if length < LSA_HEADER or offset + length > len(data):
            return
        yield offset, length
        offset += length


def _sign(data: bytearray, offset: int, length: int) -> None:
    checksum = fletcher16(bytes(data[offset + 2 : offset + length]), 14)
    data[offset + 16 : offset + 18] = checksum.to_bytes(2, "big")


def lsas_of(corpus: Iterable[bytes]) -> list[bytes]:
    """The LSAs of the updates among these packets."""
    updates = (packet for packet in corpus if packet[1] == LSU)
    return sorted({packet[at : at + size] for packet in updates for at, size in _lsas(packet)})


def forge_lsa(rng: random.Random, lsas: list[bytes], ids: list[int]) -> bytes:
    """A valid LSA with another age, number, type, id, originator or body than a real one."""
    data = bytearray(rng.choice(lsas))
    number = int.from_bytes(data[12:16], "big")
    for part in rng.sample(range(6), rng.choice((1, 1, 2, 3))):
        match part:
            case 0:
                data[0:2] = rng.choice(_AGES).to_bytes(2, "big")
            case 1:
                number = rng.choice(_NUMBERS)
            case 2:
                data[3] = rng.choice(_LSA_TYPES)
            case 3:
                data[4:8] = rng.choice((*ids, rng.getrandbits(32))).to_bytes(4, "big")
            case 4:
                data[8:12] = rng.choice((*ids, rng.getrandbits(32))).to_bytes(4, "big")
            case _:
                data[20:] = other_body(rng, data, lsas, 20)
    step = rng.choice(_STEPS)
    data[12:16] = ((number + step) & 0xFFFFFFFF).to_bytes(4, "big")
    data[18:20] = len(data).to_bytes(2, "big")
    _sign(data, 0, len(data))
    return bytes(data)


def forge(rng: random.Random, lsas: list[bytes], ids: list[int]) -> bytes:
    """A packet about forged LSAs: mostly an update, else an acknowledgment, request or DD."""
    chosen = [forge_lsa(rng, lsas, ids) for _ in range(rng.choice((1, 1, 3)))]
    headers = b"".join(lsa[:LSA_HEADER] for lsa in chosen)
    kind = rng.choice((LSU, LSU, LSU, LSU, LSU, LSU, _ACK, _ACK, _REQUEST, _DD))
    match kind:
        case 4:
            body = len(chosen).to_bytes(4, "big") + b"".join(chosen)
        case 5:
            body = headers
        case 3:
            body = b"".join(bytes(3) + lsa[3:12] for lsa in chosen)
        case _:
            flags = rng.choice((0, 1, 2, 3, 7))
            body = bytes((5, 0xDC, 0x42, flags)) + rng.randbytes(4) + headers
    data = bytes((2, kind)) + (HEADER + len(body)).to_bytes(2, "big") + bytes(20) + body
    return data[:1480] if kind != LSU else data
