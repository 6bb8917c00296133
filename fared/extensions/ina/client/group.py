"""``join`` and what a worker does then."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from itertools import pairwise
from types import MappingProxyType, TracebackType
from typing import Literal, Self

import msgspec
import numpy as np

from fared.extensions.ina.client.arrays import Array, Call, FloatSum, exact_floats, integers
from fared.extensions.ina.client.control import default_gateway
from fared.extensions.ina.client.member import CallTakenBack, WorkerMember
from fared.extensions.ina.messages import Join
from fared.extensions.ina.plan.model import BitString
from fared.extensions.ina.slots.packet import DEFAULT_PORT, DataType, Op

_OPS = MappingProxyType({"sum": Op.SUM, "product": Op.PRODUCT, "max": Op.MAX, "min": Op.MIN})
_OpName = Literal["sum", "product", "max", "min"]
_WidthName = Literal["int32", "int16"]
_WIDTHS = MappingProxyType({"int32": DataType.INT32, "int16": DataType.INT16})


class CallReport(msgspec.Struct, frozen=True):
    """A call: bytes of its arrays, and seconds; ``ranks`` is how many workers it is over.

    ``lost`` are ranks of an elastic job whose values are not in it; ``root`` is the only rank that
    has the result, None: all have. ``bus_bandwidth`` is bytes/s as the tests of NCCL define it: of
    an all-reduce, that of a ring which takes as long.
    """

    size: int
    seconds: float
    ranks: int
    lost: tuple[int, ...] = ()
    root: int | None = None

    @property
    def bandwidth(self) -> float:
        """Bytes of the arrays a second."""
        return self.size / self.seconds if self.seconds > 0 else 0.0

    @property
    def bus_bandwidth(self) -> float:
        """What the links of a worker would carry without aggregation, a second."""
        if self.root is not None:
            return self.bandwidth
        return self.bandwidth * 2 * (self.ranks - 1) / self.ranks


class GroupStats(msgspec.Struct, frozen=True):
    """What happened since ``join``. ``counters`` are those of packets, ``repeated`` among them.

    ``ranks`` is how many workers the job has now, ``lost`` are those of an elastic job that it goes
    on without.
    """

    calls: int
    size: int
    seconds: float
    epoch: int
    reason: str
    """Why the present epoch began."""
    trees: int
    counters: dict[str, int]
    ranks: int
    lost: tuple[int, ...] = ()


class WorkerGroup:
    """The workers of a job, for one of them. Leaves in good order at the end of ``with``.

    Calls are collective: every worker makes the same ones in the same order, with arrays of the
    same shapes. All of them raise InaError.
    """

    def __init__(self, member: WorkerMember) -> None:
        self._member = member
        self._calls = self._size = 0
        self._seconds = 0.0
        self._closed = False

    @property
    def rank(self) -> int:
        """The rank of this worker."""
        return self._member.join.rank

    @property
    def size(self) -> int:
        """The number of ranks; those of an elastic job may be lost (``stats``)."""
        return self._member.join.size

    def allreduce(
        self,
        arrays: Array | Sequence[Array],
        op: _OpName = "sum",
        width: _WidthName = "int32",
    ) -> CallReport:
        """Combine arrays of all workers, in place.

        Arrays are contiguous, of int32 or float32. Sums of floats travel as integers of ``width``
        and are the same bits at all workers, sums and products of int32 wrap. Products of float32
        are rounded in the order of arrival, and infinite where they overflow. In an elastic job
        results are over the workers that are left, the same ones at all of them. Raises InaError;
        then the contents of the arrays are undefined. Raises TypeError or ValueError for an array
        that is neither.
        """
        return self._call(arrays, op, width, None)

    def reduce(
        self,
        arrays: Array | Sequence[Array],
        root: int,
        op: _OpName = "sum",
        width: _WidthName = "int32",
    ) -> CallReport:
        """Combine arrays of all workers in those of the rank ``root``, in place, as ``allreduce``.

        The other ranks' arrays stay as they are. If the root is lost in an elastic job, the call
        ends without a result, and ``CallReport.lost`` names it. Raises InaError, and TypeError or
        ValueError for what is no array or rank.
        """
        if not 0 <= root < self.size:
            raise ValueError(f"root {root}: ranks are 0 to {self.size - 1}")
        return self._call(arrays, op, width, root)

    def _call(
        self, arrays: Array | Sequence[Array], op: _OpName, width: _WidthName, root: int | None
    ) -> CallReport:
        given = [arrays] if isinstance(arrays, np.ndarray) else list(arrays)
        check_arrays(given)
        begun = time.monotonic()
        receiver = 0 if root is None else self._member.job.bfr_id(root)
        over = self._over_one_set(given, _OPS[op], _WIDTHS[width], receiver)
        ranks = self._member.job.ranks
        lost = tuple(sorted(rank for bfr_id, rank in ranks.items() if not over >> bfr_id - 1 & 1))
        size = sum(array.nbytes for array in given)
        report = CallReport(size, time.monotonic() - begun, len(ranks) - len(lost), lost, root)
        self._calls += 1
        self._size += report.size
        self._seconds += report.seconds
        return report

    def _over_one_set(
        self, given: list[Array], op: Op, width: DataType, receiver: int
    ) -> BitString:
        """Combine arrays, from the start again whenever the workers of an elastic job change."""
        elastic = self._member.job.setup.elastic
        saved = [array.copy() for array in given] if elastic else []
        while True:
            begun = self._member.restarts
            try:
                return self._combine(given, op, width, receiver, begun)
            except CallTakenBack:
                for array, values in zip(given, saved, strict=True):
                    array[...] = values

    def _combine(
        self, given: list[Array], op: Op, width: DataType, receiver: int, begun: int
    ) -> BitString:
        payload = self._member.job.setup.payload
        call, first = Call(receiver), Call()  # all need the exponents
        sums: list[FloatSum] = []
        for array in given:
            if array.dtype == np.int32:
                integers(call, array, op, payload)
            elif op is Op.SUM:
                sums.append(FloatSum(array, self.size, width, payload))
                integers(first, sums[-1].exponents, Op.MAX, payload)
            else:
                exact_floats(call, array, op, payload)
        if sums:
            self._member.run(first, begun, last=False)
        for one in sums:
            one.add(call)
        return self._member.run(call, begun, last=True)

    def barrier(self) -> None:
        """Wait until all workers are here."""
        self.allreduce(np.zeros(1, np.int32))

    def stats(self) -> GroupStats:
        """Return what happened since ``join``."""
        job = self._member.job
        return GroupStats(
            calls=self._calls,
            size=self._size,
            seconds=self._seconds,
            epoch=job.setup.epoch,
            reason=job.reason,
            trees=len(job.setup.trees),
            counters=dict(self._member.packet_counters()),
            ranks=len(job.setup.workers),
            lost=tuple(job.lost_ranks),
        )

    def close(self) -> None:
        """Wait until all workers have their results, and leave."""
        if self._closed:
            return
        try:
            self.barrier()
        except BaseException:
            self.abort()
            raise
        self._closed = True
        self._member.close(leave=True)

    def abort(self) -> None:
        """Leave at once: the calls of all others fail and name this worker, or whom it had lost."""
        if not self._closed:
            self._closed = True
            self._member.close(leave=False)

    def __enter__(self) -> Self:
        """Use the group in ``with``."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the group, or after an exception abort."""
        if kind is None:
            self.close()
        else:
            self.abort()


def check_arrays(arrays: Sequence[Array]) -> None:
    """Raise TypeError or ValueError if arrays cannot be combined in place."""
    for array in arrays:
        if array.dtype not in (np.int32, np.float32):
            raise TypeError(f"an array of {array.dtype}: int32 or float32 is required")
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise ValueError("the array is not contiguous, or not writeable")
    # A chunk is copied when it is sent: it must not have become a sum by then.
    places = sorted((array.ctypes.data, array.nbytes) for array in arrays if array.nbytes)
    if any(start + size > after for (start, size), (after, _) in pairwise(places)):
        raise ValueError("two arrays have memory in common")


def join(
    job: str,
    rank: int,
    size: int,
    *,
    gateway: str | None = None,
    port: int = DEFAULT_PORT,
    timeout: float = 30.0,
) -> WorkerGroup:
    """Join a job as one of its ``size`` ranks; return when the router has accepted it.

    ``gateway`` is the router that this host is connected to, by default that of the default route.
    ``timeout``: seconds for joining, and without any result after which a call fails. Raises
    InaError.
    """
    router = gateway if gateway is not None else default_gateway()
    instance = int.from_bytes(os.urandom(4), "big")
    return WorkerGroup(WorkerMember(Join(job, rank, size, instance), (router, port), timeout))
