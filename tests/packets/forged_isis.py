"""Forged IS-IS PDUs with valid checksums: mutations, and LSPs with other ids and lifetimes."""

from __future__ import annotations

import random
from collections.abc import Iterable

from fared.protocols.isis.pdu.header import checksum_of, with_checksum
from fared.protocols.isis.pdu.model import PduType
from tests.packets.forged import other_body

HELLOS = (PduType.L1_LAN_HELLO, PduType.L2_LAN_HELLO, PduType.P2P_HELLO)
LSPS = (PduType.L1_LSP, PduType.L2_LSP)
_SIZES = dict.fromkeys(PduType, 27) | {PduType.P2P_HELLO: 20}
_SIZES |= {PduType.L1_CSNP: 33, PduType.L2_CSNP: 33, PduType.L1_PSNP: 17, PduType.L2_PSNP: 17}
SOURCE, LSP_ID, LIFETIME, SEQUENCE, CHECKSUM = 9, 12, 10, 20, 24
_LIFETIMES = (0, 0, 1, 2, 1199, 1200, 65535)
_NUMBERS = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFF0000)
_STEPS = (-1, 0, 0, 1, 1, 2, 100)
_PSEUDONODES, _FRAGMENTS = (0, 0, 0, 1, 2, 255), (0, 0, 0, 1, 2, 254, 255)
_SNPS = ((PduType.L1_CSNP, PduType.L1_PSNP), (PduType.L2_CSNP, PduType.L2_PSNP))


def whole(rng: random.Random, pdu: bytes) -> bytearray:
    """Make what a mutation left a PDU that gets past the fixed header: sizes, type, checksum."""
    data = bytearray(pdu)
    kind = PduType(data[4] & 0x1F) if len(data) > 4 and data[4] & 0x1F in set(PduType) else None
    kind = kind or rng.choice(list(PduType))
    size = _SIZES[kind]
    data = bytearray(bytes(data).ljust(size, b"\0"))
    data[:8] = bytes((0x83, size, 1, 0, kind, 1, 0, 0))
    at = 17 if kind in HELLOS else 8
    data[at : at + 2] = len(data).to_bytes(2, "big")
    if kind in LSPS and rng.random() < 0.9:
        data[LIFETIME : LIFETIME + 2] = rng.choice((1200, 1, 0, 65535)).to_bytes(2, "big")
    return data


def signed(data: bytearray) -> bytes:
    """The checksum of an LSP made right; other PDUs have none."""
    if data[4] & 0x1F in LSPS:
        return with_checksum(bytes(data), checksum_of(bytes(data)))
    return bytes(data)


def stranger(rng: random.Random) -> bytes:
    """One of some system ids that belong to nobody."""
    return bytes((0xAA, 0, 0, 0, 0, rng.randrange(64)))


def mutated(rng: random.Random, pdu: bytes, sender: bytes, systems: list[bytes]) -> bytes:
    """Make a mutation one that nothing tells from the sender's own PDUs.

    Its LSPs have the ids of these systems and of strangers.
    """
    data = whole(rng, pdu)
    if data[4] in HELLOS:
        data[SOURCE : SOURCE + 6] = sender
    elif data[4] in LSPS:
        owner = rng.choice([*systems, stranger(rng)])
        data[LSP_ID : LSP_ID + 8] = owner + bytes((rng.randrange(2), rng.randrange(2)))
        # not the last number there is: its owner would have to fall silent (§7.3.16.1)
        data[SEQUENCE] &= 0x7F
    return signed(data)


def lsps_of(corpus: Iterable[bytes]) -> list[bytes]:
    """The LSPs among these PDUs."""
    return sorted({pdu for pdu in corpus if pdu[4] & 0x1F in LSPS})


def forge_lsp(rng: random.Random, lsps: list[bytes], systems: list[bytes]) -> bytes:
    """A valid LSP with another lifetime, number, id, level or body than a real one."""
    data = bytearray(rng.choice(lsps))
    number = int.from_bytes(data[SEQUENCE : SEQUENCE + 4], "big")
    for part in rng.sample(range(6), rng.choice((1, 1, 2, 3))):
        match part:
            case 0:
                data[LIFETIME : LIFETIME + 2] = rng.choice(_LIFETIMES).to_bytes(2, "big")
            case 1:
                number = rng.choice(_NUMBERS)
            case 2:
                data[LSP_ID : LSP_ID + 6] = rng.choice((*systems, stranger(rng)))
            case 3:
                data[LSP_ID + 6 : LSP_ID + 8] = bytes(
                    (rng.choice(_PSEUDONODES), rng.choice(_FRAGMENTS))
                )
            case 4:
                data[26] = rng.randrange(256)
                data[4] = rng.choice(LSPS)
            case _:
                data[27:] = other_body(rng, data, lsps, 27)
    number = max(0, number + rng.choice(_STEPS))
    data[SEQUENCE : SEQUENCE + 4] = number.to_bytes(4, "big")
    data[8:10] = len(data).to_bytes(2, "big")
    return signed(data)


def forge(rng: random.Random, lsps: list[bytes], systems: list[bytes], sender: bytes) -> bytes:
    """A PDU about forged LSPs: mostly the LSP, else a CSNP or PSNP with its entry."""
    if rng.random() < 0.7:
        return forge_lsp(rng, lsps, systems)
    chosen = sorted(
        (forge_lsp(rng, lsps, systems) for _ in range(rng.choice((0, 1, 3, 15)))),
        key=lambda lsp: lsp[LSP_ID : LSP_ID + 8],
    )
    entries = b"".join(
        lsp[LIFETIME : LIFETIME + 2] + lsp[LSP_ID : LSP_ID + 8] + lsp[SEQUENCE : SEQUENCE + 6]
        for lsp in chosen
    )
    kind = rng.choice(rng.choice(_SNPS))
    size = _SIZES[kind]
    data = bytearray(size)
    data[:8] = bytes((0x83, size, 1, 0, kind, 1, 0, 0))
    data[10:17] = sender + b"\0"
    if size > 17:
        data[25:33] = b"\xff" * 8
    data += bytes((9, len(entries))) + entries
    data[8:10] = len(data).to_bytes(2, "big")
    return bytes(data)
