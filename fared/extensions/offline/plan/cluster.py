"""Sweeping sets of failures on a cluster of Dask: the same parts, computed on other machines.

The workers need this version of fared, and nothing of this machine. The task is the first thing
that the cluster computes, so that a worker which dies takes no data with it that could not be made
again; a part of a worker that died goes to another one. Dask is the extra ``plan``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from fared.extensions.offline.plan.run import PlanTask, SetPart, WorkersDiedError
from fared.extensions.offline.plan.sweep import SetOutcome

CONNECT_WITHIN = 15.0
"""Seconds for the scheduler to answer."""
_ATTEMPTS = 3


class ClusterError(RuntimeError):
    """The scheduler, or what its workers lack."""


def compute_on_cluster(
    task: PlanTask, parts: Iterable[SetPart], scheduler: str
) -> Iterator[tuple[SetPart, SetOutcome]]:
    """Yield the outcome of each part as it is finished. Raises ClusterError, WorkersDiedError."""
    try:
        # Dask takes as long to load as all of fared, and only this uses it.
        import distributed  # noqa: PLC0415
    except ImportError as error:
        raise ClusterError("--scheduler requires Dask: pip install 'fared[plan]'") from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # errors are told here
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_WITHIN, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(f"{scheduler}: no scheduler of Dask answers: {error}") from error
    with client:
        held = client.submit(_held, task, pure=False)
        waiting = {
            client.submit(_compute, held, part, pure=False, retries=_ATTEMPTS - 1): part
            for part in parts
        }
        try:
            for future in distributed.as_completed(list(waiting), loop=client.loop):
                yield waiting.pop(future), future.result()
        except distributed.scheduler.KilledWorker as error:
            raise WorkersDiedError("several workers died at the same failures") from error
        except (ImportError, AttributeError) as error:
            raise ClusterError(f"the workers of {scheduler} have another fared: {error}") from error
        finally:
            client.cancel([held, *waiting])


def _held(task: PlanTask) -> PlanTask:
    return task


def _compute(task: PlanTask, part: SetPart) -> SetOutcome:
    return task.compute(part)
