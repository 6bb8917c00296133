"""The process ``fared-jobs``, and the messages to and from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fared.extensions.ina.control.exchange import MAX_SIZE, FromJobs
from fared.runtime.supervisor import ServerEvents, Supervisor


class JobsProcess(Supervisor):
    """The process. ``begins`` is called when it has started, to tell what is known."""

    def __init__(
        self,
        begins: Callable[[], None],
        took: Callable[[FromJobs], None],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
    ) -> None:
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
        self._begins, self._takes = begins, took
        self._timer = self._loop.call_later(0.0, self._start)

    def _began(self) -> None:
        self._begins()

    def _took(self, answer: FromJobs) -> None:
        self._takes(answer)
