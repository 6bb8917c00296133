"""All-reduce for the workers of a job.

Use::

    from fared.extensions.ina import client

    with client.join("train", rank=0, size=8) as group:
        group.allreduce(gradients)

No privileges are needed. The routers of the fabric sum; every worker gets the same bits.

``group`` is what a caller sees, ``member`` its part of the job: ``session`` is the thread that
serves it, over ``control`` to its router and the ``ways`` of packets (``bier_sockets``, ``ring``).
``arrays`` divides arrays into chunks. ``waits`` tells for whom a call waits, ``errors`` why it has
no result.
"""

from fared.extensions.ina.client.errors import (
    CallTimeout,
    InaError,
    JobEnded,
    JoinError,
    WorkerLost,
)
from fared.extensions.ina.client.group import CallReport, GroupStats, WorkerGroup, join

__all__ = [
    "CallReport",
    "CallTimeout",
    "GroupStats",
    "InaError",
    "JobEnded",
    "JoinError",
    "WorkerGroup",
    "WorkerLost",
    "join",
]
