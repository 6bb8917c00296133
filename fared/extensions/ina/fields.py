"""Types of the fields of jobs, with their bounds: msgspec checks them wherever one is decoded.

Jobs are flooded, so anybody in the area may have written one; and what is decoded is packed into
headers, given to sockets, and shown, without another look.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta

from fared.core.bier import LENGTHS, MAX_BFR_ID
from fared.core.wire import DecodeError

MOST_WORKERS: Final = LENGTHS[-1]
"""The longest bit string (RFC 8296 §2.1.2)."""
MOST_JOB_ID: Final = (1 << 22) - 1
MOST_TREES: Final = 1024
MOST_GIVEN: Final = 64
"""Routers of a tree that an operator gives."""
MOST_WINDOW: Final = 4096
LEAST_PORT: Final = 1024
"""Ports below it are those of services: nobody's sums or results go there."""
MOST_NAME: Final = 64
MOST_SHARE: Final = 1000.0
LEAST_SHARE: Final = 1 / MOST_SHARE
_MOST_REASON = 1024
_MOST_PAYLOAD = 0xFFF8
_OCTET = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_UNICAST = rf"\A(?!(0|127|22[4-9]|2[3-5][0-9])\.){_OCTET}(\.{_OCTET}){{3}}\Z"
NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{MOST_NAME - 1}}}")

JobName = Annotated[str, Meta(pattern=rf"\A{NAME.pattern}\Z")]
"""It stands in tables, logs and labels of metrics."""
Reason = Annotated[str, Meta(max_length=_MOST_REASON)]
JobId = Annotated[int, Meta(ge=1, le=MOST_JOB_ID)]
EpochNumber = Annotated[int, Meta(ge=0, le=0xFFFF)]
BfrId = Annotated[int, Meta(ge=1, le=MOST_WORKERS)]
"""A worker's bit in its job."""
Rank = Annotated[int, Meta(ge=0, lt=MOST_WORKERS)]
FabricBfrId = Annotated[int, Meta(ge=1, le=MAX_BFR_ID)]
Router = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
WorkerOrRouter = Annotated[int, Meta(ge=-MOST_WORKERS, le=(1 << 63) - 1)]
"""A vertex: a worker as minus its BFR-id."""
if TYPE_CHECKING:
    Length = int
else:
    Length = Literal[LENGTHS]
    """Bits of bit strings. mypy would ask every computed one for a proof."""
Octet = Annotated[int, Meta(ge=0, le=0xFF)]
Instance = Annotated[int, Meta(ge=0, le=0xFFFFFFFF)]
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
TreeId = Annotated[int, Meta(ge=0, lt=MOST_TREES)]
Weight = Annotated[int, Meta(ge=1, le=0xFFFF)]
Window = Annotated[int, Meta(ge=1, le=MOST_WINDOW)]
Payload = Annotated[int, Meta(ge=8, le=_MOST_PAYLOAD, multiple_of=8)]
"""Bytes of values in a packet: whole values of each type."""
Share = Annotated[float, Meta(ge=LEAST_SHARE, le=MOST_SHARE)]
Address = Annotated[str, Meta(pattern=_UNICAST)]
"""IPv4 unicast, as dotted quad: no host name, no group, no broadcast to all."""
Port = Annotated[int, Meta(ge=LEAST_PORT, le=0xFFFF)]


class _WorkerAddress(msgspec.Struct):
    address: Address
    port: Port


def checked_endpoint(address: str, port: int) -> None:
    """Check an address and port that came in octets. Raises DecodeError."""
    try:
        msgspec.convert({"address": address, "port": port}, _WorkerAddress)
    except msgspec.ValidationError as error:
        raise DecodeError("tlv", 0, f"address of aggregation: {error}") from error
