"""A worker process of a test: the same calls at all ranks, every sum compared with the true one.

``python worker_program.py '{"job": ..., "rank": ..., ...}'`` prints one JSON line: a digest of all
results, or the error. It begins when the file ``begin`` exists, if given: not all start at the
same time, and a call of one waits for all. ``silent`` is the call and rank at which a worker falls
silent, ``held`` where it waits until the file ``release`` exists, while the others are in the
middle of that call. With ``stop``, a file, all calls have the same numbers and go on until it
exists; then each sum is compared with that over the workers that the library tells: those of an
elastic job change.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path

import numpy as np

from fared.extensions.ina import client


def numbers(call: int, rank: int, given: dict) -> np.ndarray:
    rng = np.random.default_rng([call, rank])
    if given["kind"] == "int":
        return rng.integers(-(1 << 24), 1 << 24, given["elements"], np.int32)
    return rng.standard_normal(given["elements"]).astype(np.float32)


def tell(line: dict) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def wait_for_file(path: Path, seconds: float) -> None:
    """Return when the file exists; a script, this cannot import ``tests.waiting``."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path}"
        time.sleep(0.01)


def work(given: dict) -> dict:
    digest = hashlib.sha256()
    made = {key: given[key] for key in ("gateway", "timeout") if key in given}
    longest = 0.0
    with client.join(given["job"], given["rank"], given["size"], **made) as group:
        tell({"joined": given["rank"]})
        if "begin" in given:
            wait_for_file(Path(given["begin"]), 60)
        for call in range(given["calls"]):
            parts = [numbers(call, rank, given) for rank in range(given["size"])]
            exact = sum(part.astype(np.float64) for part in parts)
            mine = parts[given["rank"]]
            if [call, given["rank"]] == given.get("silent"):
                time.sleep(3600)
            if [call, given["rank"]] == given.get("held"):
                wait_for_file(Path(given["release"]), 60)
            longest = max(longest, group.allreduce(mine).seconds)
            if given["kind"] == "int":
                assert np.array_equal(mine, exact), f"call {call}: not the sum"
            else:
                error = np.abs(mine - exact).max()
                assert error < 1e-6 * np.abs(exact).max(), f"call {call}: off by {error}"
            digest.update(mine.tobytes())
        found = group.stats()
    return {
        "digest": digest.hexdigest(),
        "longest": longest,
        "epoch": found.epoch,
        "counters": found.counters,
    }


def work_on(given: dict) -> dict:
    """Call until some worker has seen the file: all end after the same call."""
    parts = [numbers(0, rank, given) for rank in range(given["size"])]
    stop, ended, longest, sets = Path(given["stop"]), np.zeros(1, np.int32), 0.0, []
    with client.join(given["job"], given["rank"], given["size"], timeout=20.0) as group:
        tell({"joined": given["rank"]})
        while not ended[0]:
            mine, ended[0] = parts[given["rank"]].copy(), stop.exists()
            report = group.allreduce([mine, ended])
            left = [rank for rank in range(given["size"]) if rank not in report.lost]
            exact = sum(parts[rank].astype(np.float64) for rank in left)
            wrong = np.abs(mine - exact).max()
            limit = 0 if given["kind"] == "int" else 1e-6 * np.abs(exact).max()
            assert wrong <= limit, f"ranks {left}: off by {wrong}"
            assert report.ranks == len(left)
            longest = max(longest, report.seconds)
            if left not in sets[-1:]:
                sets.append(left)
                tell({"over": left})
        found = group.stats()
    return {"sets": sets, "longest": longest, "ranks": found.ranks, "lost": found.lost}


def work_in_all_ways(given: dict) -> dict:
    """One call of each operation and width; several arrays in one."""
    size, rank = given["size"], given["rank"]
    floats = [numbers(0, one, given | {"kind": "float"}) for one in range(size)]
    whole = [numbers(1, one, given | {"kind": "int"}) for one in range(size)]
    exact = np.sum(floats, axis=0, dtype=np.float64)
    digest = hashlib.sha256()
    with client.join(given["job"], rank, size) as group:
        tell({"joined": rank})
        ways = (("max", np.maximum), ("min", np.minimum), ("product", np.multiply))
        for op, combine in ways:
            mine, other = floats[rank].copy(), whole[rank].copy()
            group.allreduce([mine, other], op=op)
            # Products are rounded in the order in which they arrive at a router.
            assert np.allclose(mine, combine.reduce(floats), 1e-6 if op == "product" else 0, 0), op
            wrapped = combine.reduce(whole, dtype=np.int32)  # numpy would widen products
            assert np.array_equal(other, wrapped), op
        short, long = floats[rank].copy(), floats[rank].copy()
        sizes = [group.allreduce(a, width=w).size for a, w in ((short, "int16"), (long, "int32"))]
        assert sizes == [short.nbytes, short.nbytes]
        errors = [
            float(np.abs(found - exact).max() / np.abs(exact).max()) for found in (short, long)
        ]
        for found in (short, long):
            digest.update(found.tobytes())
        group.barrier()
    return {"digest": digest.hexdigest(), "errors": errors, "counters": {}}


def main() -> None:
    given = json.loads(sys.argv[1])
    ways = {"stop": work_on, "errors": work_in_all_ways}
    run = next((way for key, way in ways.items() if key in given), work)
    try:
        result = run(given)
    except client.InaError as error:
        result = {
            "error": type(error).__name__,
            "text": str(error),
            "ranks": getattr(error, "ranks", getattr(error, "missing", ())),
        }
    tell(result)


if __name__ == "__main__":
    main()
