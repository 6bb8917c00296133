"""Authentication of the link-local signaling block (RFC 5613 §2.5), by the key of its packet.

The digest is computed as that of the packet, over the block up to it. Its sequence number is that
of the packet. Only 32-bit sequence numbers have a place in the block: packets with those of RFC
7474 have none.
"""

from __future__ import annotations

import hmac

from fared.core.wire import DecodeError
from fared.protocols.igp.keys import AuthKey
from fared.protocols.ospf.auth.signature import digest
from fared.protocols.ospf.packet.lls import decode_signed, encode_unsigned


def signed_block(flags: int, key: AuthKey, sequence: int) -> bytes:
    """Encode and sign a block; ``sequence`` is that of the packet before it."""
    unsigned = encode_unsigned(flags, sequence, key.algorithm.digest_size)
    return unsigned + digest(unsigned, key)


def verified_flags(data: bytes, key: AuthKey, sequence: int) -> int:
    """Return the extended options of a block. Raises DecodeError, ``auth`` if it is not authentic.

    Digests are compared in constant time.
    """
    flags, number, covered, found = decode_signed(data)
    if number != sequence:
        raise DecodeError("auth", 0, f"sequence number {number} of an LLS block, not {sequence}")
    if not hmac.compare_digest(found, digest(covered, key)):
        raise DecodeError("auth", len(covered), "the digest of an LLS block does not match")
    return flags
