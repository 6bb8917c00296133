"""What is flooded: a router's capability, and a job with its trees.

A job is msgpack, compressed: the trees of a job differ little. A router that cannot read one, or
does not know its version, ignores it.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

import msgspec
from msgspec.structs import replace

from fared.core.ids import NodeId
from fared.core.wire import DecodeError
from fared.extensions.ina.by_bier import BierWay
from fared.extensions.ina.control.places import RouterPlaces
from fared.extensions.ina.fields import (
    Address,
    BfrId,
    Instance,
    Payload,
    Port,
    Reason,
    Router,
    Share,
    Window,
    checked_endpoint,
)
from fared.extensions.ina.messages import JobEpoch
from fared.extensions.ina.plan.model import GivenTree
from fared.extensions.ina.slots.setup import SetupError

CAPABILITY_KEY: Final = 0
_VERSION: Final = 1
_CAPABILITY = struct.Struct("!BBH4sIQ")
"""Version, flags (former versions send none, and ignore them), port, address, instance, memory."""
_SENDS_BIER: Final = 1
_JOBS = struct.Struct("!H")
"""It follows since fared floods it; former versions ignore it, and have the usual number."""
_USUAL_JOBS: Final = 16
_MOST_RAW: Final = 1 << 20
"""Bytes of a job, so that a small value cannot become a large one."""


class SumCapability(msgspec.Struct, frozen=True):
    """A router that sums: its address and port, the most bytes of jobs, and the most jobs.

    ``instance`` differs after each start of ``fared-ina``, whose slots are empty then. ``bier``: it
    sends results by BIER.
    """

    address: Address
    port: Port
    instance: Instance
    memory: int
    jobs: int = _USUAL_JOBS
    bier: bool = False

    @property
    def places(self) -> RouterPlaces:
        """What its jobs share."""
        return RouterPlaces(self.jobs, self.memory)


class JobAdvert(msgspec.Struct, frozen=True, array_like=True):
    """A job as its head floods it. ``leaves`` has the router of each worker, by BFR-id.

    Lost workers of an elastic job are among them. ``share`` is the job's part of links that several
    use. ``results``: the BFR-ids of all workers, or why results go by unicast whatever the trees
    are; whether they go by BIER in an epoch, the job tells. ``tree`` is the one that an operator
    gave, which the job has while it works. The workers of a ``wide`` job are in several areas.
    """

    job: JobEpoch
    leaves: dict[BfrId, Router]
    payload: Payload
    window: Window
    ended: bool = False
    share: Share = 1.0
    results: BierWay | Reason = ""
    tree: GivenTree | None = None
    wide: bool = False

    @property
    def way(self) -> BierWay | str:
        """The BFR-ids of all workers, or why results go by unicast: former heads told less."""
        return self.results or self.job.bier or "its head does not tell"

    @property
    def key(self) -> int:
        """The key of its information: another one in the next epoch, which so is never delayed.

        OSPF and IS-IS limit how often one LSA or LSP changes.
        """
        return 2 * self.job.setup.job_id + self.job.setup.epoch % 2


def encode_capability(given: SumCapability) -> bytes:
    """Encode a capability."""
    address = bytes(int(part) for part in given.address.split("."))
    flags = _SENDS_BIER if given.bier else 0
    fixed = _CAPABILITY.pack(_VERSION, flags, given.port, address, given.instance, given.memory)
    return fixed + _JOBS.pack(given.jobs)


def decode_capability(value: bytes) -> SumCapability:
    """Decode a capability. Raises DecodeError."""
    if len(value) < _CAPABILITY.size:
        raise DecodeError("truncated", len(value), "capability of aggregation")
    version, flags, port, address, instance, memory = _CAPABILITY.unpack_from(value)
    if version != _VERSION:
        raise DecodeError("version", 0, str(version))
    jobs = _USUAL_JOBS
    if len(value) >= _CAPABILITY.size + _JOBS.size:
        (jobs,) = _JOBS.unpack_from(value, _CAPABILITY.size)
    text = ".".join(map(str, address))
    found = SumCapability(text, port, instance, memory, jobs, bool(flags & _SENDS_BIER))
    checked_endpoint(found.address, found.port)
    return found


def encode_job(advert: JobAdvert) -> bytes:
    """Encode a job."""
    return bytes((_VERSION,)) + zlib.compress(msgspec.msgpack.encode(advert), 9)


def decode_job(value: bytes) -> JobAdvert:
    """Decode a job. Raises DecodeError, also if it cannot be right."""
    if value[:1] != bytes((_VERSION,)):
        raise DecodeError("version", 0, value[:1].hex())
    try:
        raw = zlib.decompressobj().decompress(value[1:], _MOST_RAW)
        advert = msgspec.msgpack.decode(raw, type=JobAdvert)
        advert = replace(advert, job=advert.job.checked())
    except (zlib.error, msgspec.MsgspecError, SetupError, RecursionError) as error:
        raise DecodeError("tlv", 1, f"job of aggregation: {error}") from error
    if set(advert.leaves) != {*advert.job.setup.workers, *advert.job.lost}:
        raise DecodeError("tlv", 1, "job of aggregation: workers without a router")
    return advert


def leaves_in_order(advert: JobAdvert) -> list[NodeId]:
    """Return the routers of workers, by the lowest BFR-id of each: who may be head, in turn."""
    found = dict.fromkeys(NodeId(leaf) for _, leaf in sorted(advert.leaves.items()))
    return list(found)
