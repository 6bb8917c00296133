"""Documents about BIER."""

from typing import Any

from fared.management.documents import bier
from tests.api.documents.common import Json
from tests.api.sample import sample


def _bfer(bfr_id: int, prefix: str, *tables: int, **more: Any) -> Json:
    hops = [
        sample(bier.BierNextHop, interface=f"swp{n}", neighbor=f"10.255.0.{n}", tables=count)
        for n, count in enumerate(tables, 1)
    ]
    return sample(bier.Bfer, bfr_id=bfr_id, prefix=prefix, bit=bfr_id - 1, nexthops=hops, **more)


def _mask(spine: int, f_bm: str, bfr_ids: str) -> Json:
    return sample(
        bier.BiftMask,
        interface=f"swp{spine}",
        neighbor=f"10.255.0.{spine}",
        hostname=f"spine{spine}",
        f_bm=f_bm,
        bfr_ids=bfr_ids,
    )


BIER = sample(
    bier.Bier,
    enabled=True,
    sub_domain=1,
    bfr_id=33,
    bit_string_length=64,
    bfers=[
        _bfer(1, "10.0.1.2/32", 16, hostname="leaf1", host=True),
        _bfer(2, "10.0.2.2/32", 1, 5, 5, 5, hostname="leaf2"),
        _bfer(3, "10.0.3.2/32", 4, 4, 4, 4, hostname="leaf3"),
        _bfer(33, "10.255.0.5/32", hostname="leaf1", local=True),
        _bfer(34, "10.255.0.6/32", problem="BFR-id also of 10.255.0.7/32"),
    ],
    neighbors=[
        sample(
            bier.BfrNeighborEntry,
            interface=f"swp{spine}",
            neighbor=f"10.255.0.{spine}",
            hostname=f"spine{spine}",
            bfr_ids="2-3",
            packets=1200 * spine,
            bytes=1_800_000 * spine,
        )
        for spine in (1, 2)
    ],
    bifts=[
        {
            "set": 0,
            "bift_id": 0x10100,
            "entropy": "0",
            "local": "33",
            "masks": [_mask(1, f"{6:016x}", "2-3")],
        },
        {
            "set": 0,
            "bift_id": 0x10100,
            "entropy": "1-3",
            "local": "33",
            "masks": [_mask(1, f"{4:016x}", "3"), _mask(2, f"{2:016x}", "2")],
        },
    ],
    packets=sample(bier.BierPackets, received=3611, delivered=7, unknown=2),
)

BIER_BIFT = {**BIER, "bift": True}
