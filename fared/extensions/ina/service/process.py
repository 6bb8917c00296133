"""The process ``fared-jobs``, and the messages to and from it."""

from __future__ import annotations

from typing import Any

from fared.extensions.ina.control.exchange import MAX_SIZE, FromJobs
from fared.runtime.supervisor import ServerEvents, Supervisor


class JobsProcess(Supervisor):
    """The process, from the next turn of the loop on."""

    def __init__(self, log: Any) -> None:  # noqa: ANN401 - structlog's filtering logger has no public type
        super().__init__(
            "fared.extensions.ina.jobd",
            FromJobs,
            log,
            ServerEvents(
                "ina-jobs-process-not-started",
                "ina-jobs-process-ended",
                "ina-jobs-message-refused",
            ),
            most=MAX_SIZE,
        )
        self._timer = self._loop.call_later(0.0, self._start)
