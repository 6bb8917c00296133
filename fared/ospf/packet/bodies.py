"""LSA bodies of RFC 2328: router, network, summary and AS-external (§A.4.2 to §A.4.5)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple


class RouterLinkType(enum.IntEnum):
    """Link types in a router LSA (RFC 2328 §A.4.2)."""

    POINT_TO_POINT = 1
    TRANSIT = 2
    STUB = 3
    VIRTUAL = 4


class RouterLink(NamedTuple):
    """One link of a router LSA. ``link_id`` and ``link_data`` mean what §12.4.1 says by type.

    A tuple, as a large fabric has a hundred thousand of them to make when its LSDB arrives.
    """

    link_type: int
    link_id: int
    link_data: int
    metric: int


B_BIT, E_BIT, V_BIT = 0x01, 0x02, 0x04
"""Flags of a router LSA (RFC 2328 §A.4.2)."""


@dataclass(frozen=True, slots=True)
class RouterLsa:
    """Router LSA body; ``flags``: border router, AS boundary router, end of a virtual link."""

    flags: int
    links: tuple[RouterLink, ...]


@dataclass(frozen=True, slots=True)
class NetworkLsa:
    """Network LSA body."""

    network_mask: int
    attached_routers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SummaryLsa:
    """Summary LSA body, types 3 and 4."""

    network_mask: int
    metric: int


@dataclass(frozen=True, slots=True)
class AsExternalLsa:
    """AS-external LSA body, types 5 and 7 (TOS 0 only)."""

    network_mask: int
    type_2: bool
    metric: int
    forwarding_address: int
    external_route_tag: int
