"""Which workers an elastic job has: routers flood whom they lost, and who wants to come back.

A router tells of its own workers only, and knows them by their connections to ``fared-ina``. The
head begins an epoch without those who are lost; they may come back in a later one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from fared.core.ids import NodeId
from fared.core.wire import DecodeError
from fared.extensions.ina.control.advert import JobAdvert
from fared.extensions.ina.fields import MOST_WORKERS, BfrId
from fared.extensions.ina.messages import WorkerState

WORKERS_KEY = 1 << 23
"""The key of a router's report about a job: this and the job's id; those of jobs are lower."""
LEAST_WORKERS = 2
_EPOCHS = 1 << 16
_BfrIds = Annotated[tuple[BfrId, ...], Meta(max_length=MOST_WORKERS)]


class WorkerReport(msgspec.Struct, frozen=True, array_like=True):
    """Workers of one router, by BFR-id: lost, left in good order, waiting to come back."""

    lost: _BfrIds = ()
    left: _BfrIds = ()
    returning: _BfrIds = ()


def report_of(workers: list[WorkerState]) -> WorkerReport:
    """Return what a router floods of workers as its ``fared-ina`` sees them."""

    def those(state: str) -> tuple[int, ...]:
        return tuple(sorted(one.bfr_id for one in workers if one.state == state))

    return WorkerReport(those("lost"), those("left"), those("returning"))


def encode_report(report: WorkerReport) -> bytes:
    """Encode a report."""
    return msgspec.msgpack.encode(report)


def decode_report(value: bytes) -> WorkerReport:
    """Decode a report. Raises DecodeError."""
    try:
        return msgspec.msgpack.decode(value, type=WorkerReport)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DecodeError("tlv", 0, f"workers of a job of aggregation: {error}") from error


def with_changed_workers(
    advert: JobAdvert, reports: Mapping[NodeId, WorkerReport]
) -> tuple[JobAdvert, str] | None:
    """Return a job with other workers in its next epoch, and why; None if they are the same.

    Who has left in good order is not missed, but is no worker of an epoch that begins anyway.
    """
    if not advert.job.setup.elastic:
        return None
    own = {bfr_id: reports.get(NodeId(leaf)) for bfr_id, leaf in advert.leaves.items()}
    told = {bfr_id: report for bfr_id, report in own.items() if report is not None}
    present = set(advert.job.setup.workers)
    lost = {bfr_id for bfr_id, report in told.items() if bfr_id in report.lost} & present
    back = {bfr_id for bfr_id, report in told.items() if bfr_id in report.returning} - present
    if not lost and not back:
        return None
    left = {bfr_id for bfr_id, report in told.items() if bfr_id in report.left}
    workers = tuple(sorted((present - lost - left) | back))
    since = (advert.job.setup.epoch + 1) % _EPOCHS
    setup = replace(advert.job.setup, workers=workers, trees=(), since=since)
    gone = tuple(sorted(advert.leaves.keys() - set(workers)))
    changed = replace(advert, job=replace(advert.job, setup=setup, lost=gone))
    told_of = [_told(advert, lost, "lost"), _told(advert, back, "back")]
    return changed, ", ".join(text for text in told_of if text)


def _told(advert: JobAdvert, bfr_ids: set[int], what: str) -> str:
    ranks = sorted(advert.job.ranks[bfr_id] for bfr_id in bfr_ids)
    if not ranks:
        return ""
    named = ", ".join(map(str, ranks))
    return f"rank {named} is {what}" if len(ranks) == 1 else f"ranks {named} are {what}"
