"""Information of an application that a router floods: values by key, which no route depends on.

Each protocol floods them in its own way, where its code point is set: OSPF as opaque LSAs of an
area (RFC 5250), IS-IS in GENINFO TLVs (RFC 6823) of all levels.
"""

from __future__ import annotations

from typing import Final

OPAQUE_TYPE: Final = 248
"""The first opaque type for experiments (RFC 5250 §7)."""
APPLICATION: Final = 0xFFFF
"""The application of GENINFO TLVs: the last one, which IANA has not assigned."""
MAX_KEY: Final = 0xFFFFFF
"""Keys have 24 bits, as opaque ids."""
MAX_SIZE: Final = 60_000
"""Bytes of a value: an LSA has 65,535 at most."""
MAX_SIZE_ISIS: Final = 16_000
"""The same in IS-IS, where 256 fragments hold all that a router advertises."""
