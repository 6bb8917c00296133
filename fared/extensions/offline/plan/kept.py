"""What an interrupted plan has computed so far, in a file, so that it can be resumed.

The file begins with a line that names the plan by a digest of all that it depends on; then there is
one record for each finished part. A record that was not written whole is ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import fared
from fared.extensions.offline.plan.run import PlanTask, SetPart
from fared.extensions.offline.plan.sweep import FailureRows, SetOutcome

_MAGIC = b"fared-plan-parts/1 "
_SIZE = 8
_ARRAYS = FailureRows.__struct_fields__


class KeptError(ValueError):
    """The file is not that of this plan."""


class _PlanRecord(msgspec.Struct):
    part: tuple[int, int, int]
    arrays: list[tuple[str, list[int], bytes]]
    """Type, shape and bytes of each array of the outcome."""


def digest(task: PlanTask) -> str:
    """Return what names a plan: this version, the network, the healthy capacities, the sets."""
    found = hashlib.sha256(fared.__version__.encode())
    network = task.fabric
    graph = network.graph
    _feed(found, network.names, network.link_names, network.capacity, network.link_edges)
    _feed(found, network.link_parts, network.ends, graph.indptr, graph.dst, graph.transit)
    _feed(found, np.array(graph.metric), task.healthy)
    _feed(found, sorted((task.demands or {}).items()))
    for failures in task.sets:
        _feed(found, failures.kind, failures.left, failures.link_start, failures.links)
        _feed(found, failures.node_start, failures.nodes, failures.sizes)
    return found.hexdigest()


def _feed(into: Any, *values: object) -> None:  # noqa: ANN401 - a hash of hashlib
    for value in values:
        raw = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        into.update(len(raw).to_bytes(_SIZE, "big") + raw)


class Kept:
    """The file of one plan. ``found`` are the parts that it had when it was opened."""

    def __init__(self, path: Path, task: PlanTask) -> None:
        """Open or create the file. Raises KeptError, OSError."""
        self._head = _MAGIC + digest(task).encode() + b"\n"
        self.found: dict[SetPart, SetOutcome] = {}
        whole = 0
        with contextlib.suppress(FileNotFoundError):
            whole = self._read(path.read_bytes(), path)
        self._file = path.open("r+b" if whole else "wb")
        if not whole:
            self._file.write(self._head)
        self._file.truncate(whole or len(self._head))
        self._file.seek(whole or len(self._head))

    def add(self, part: SetPart, outcome: SetOutcome) -> None:
        """Write one finished part."""
        arrays = []
        for name in _ARRAYS:
            value = getattr(outcome, name)
            arrays.append((value.dtype.str, list(value.shape), value.tobytes()))
        record = zlib.compress(
            msgspec.msgpack.encode(_PlanRecord((part.of, part.first, part.last), arrays)), 1
        )
        self._file.write(len(record).to_bytes(_SIZE, "big") + record)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, raw: bytes, path: Path) -> int:
        """Read all whole records; return where they end, 0 for an empty file."""
        if not raw:
            return 0
        if not raw.startswith(_MAGIC):
            raise KeptError(f"{path} is not a file of parts of a plan")
        if not raw.startswith(self._head):
            raise KeptError(f"{path} is of another plan: another database, or other options")
        end = len(self._head)
        for record, after in _records(raw, end):
            part = SetPart(*record.part)
            arrays: dict[str, Any] = dict(zip(_ARRAYS, map(_array, record.arrays), strict=True))
            self.found[part] = SetOutcome(first=part.first, **arrays)
            end = after
        return end


def _records(raw: bytes, at: int) -> Iterator[tuple[_PlanRecord, int]]:
    while at + _SIZE <= len(raw):
        after = at + _SIZE + int.from_bytes(raw[at : at + _SIZE], "big")
        if after > len(raw):
            return
        try:
            whole = zlib.decompress(raw[at + _SIZE : after])
            yield msgspec.msgpack.decode(whole, type=_PlanRecord), after
        except (zlib.error, msgspec.DecodeError):
            return
        at = after


def _array(kept: tuple[str, list[int], bytes]) -> np.ndarray[Any, Any]:
    kind, shape, raw = kept
    return np.frombuffer(raw, np.dtype(kind)).reshape(shape)
