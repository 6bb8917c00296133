"""One worker's part of a job, as its caller has it: join, calls that wait, and leave."""

from __future__ import annotations

import time
from collections import Counter

from fared.extensions.ina.client.arrays import Call
from fared.extensions.ina.client.errors import (
    CallTimeout,
    InaError,
    JobEnded,
    JoinError,
    WorkerLost,
)
from fared.extensions.ina.client.session import WorkerSession
from fared.extensions.ina.messages import JobEpoch, Join
from fared.extensions.ina.plan.model import BitString
from fared.extensions.ina.slots.worker import WorkerMachine

_LONGEST_WAIT = 1.0


class CallTakenBack(Exception):  # noqa: N818 - not an error: who catches it calls again
    """Workers of an elastic job have changed in the middle of a call."""


class WorkerMember:
    """A worker that joined. ``timeout``: seconds without any result after which a call fails."""

    def __init__(self, join: Join, router: tuple[str, int], timeout: float) -> None:
        """Join. Raises InaError."""
        self.join, self.timeout = join, timeout
        self._session = WorkerSession(join, router)
        self._await_first()

    def _await_first(self) -> None:
        session, end = self._session, time.monotonic() + self.timeout
        with session.lock:
            while not session.joined and session.failure is None and time.monotonic() < end:
                session.changed.wait(0.1)
            failure = session.failure
            if not session.joined and failure is None:
                failure = JoinError(f"job {self.join.job}: {session.control.error}")
        if failure is not None:
            self.close(leave=False)
            raise failure

    @property
    def job(self) -> JobEpoch:
        """The job in its present epoch."""
        return self._session.job

    @property
    def restarts(self) -> int:
        """How often a call was taken back, since workers of an elastic job changed."""
        with self._session.lock:
            machine = self._session.machine
            return 0 if machine is None else machine.restarts

    def run(self, call: Call, begun: int, *, last: bool) -> BitString:
        """Run a part of a call to its end; return the workers whose values are in it.

        ``begun``: ``restarts`` when the call began; ``last``: it has no other part. Raises
        InaError, and CallTakenBack if the call is to be made again, over other workers.
        """
        session = self._session
        with session.lock:
            machine = session.machine
            if session.failure is not None:
                raise session.failure
            assert machine is not None
            if machine.restarts != begun:
                raise CallTakenBack
            session.begin(machine, call, last=last)
            try:
                self._await_results(machine, begun)
            except CallTakenBack:
                raise
            except BaseException:
                machine.stop()  # the caller has its arrays back, and may change them
                raise
            return machine.summed_over

    def _await_results(self, machine: WorkerMachine, begun: int) -> None:
        session = self._session
        while machine.next < session.target:
            if machine.restarts != begun:
                raise CallTakenBack
            if session.failure is not None:
                raise session.failure
            now = time.monotonic()
            if now - session.heard_at >= self.timeout:
                session.failure = CallTimeout(self.timeout, session.missing_ranks(now))
                raise session.failure
            session.changed.wait(min(_LONGEST_WAIT, self.timeout))

    def packet_counters(self) -> Counter[str]:
        """Return the counters of packets."""
        with self._session.lock:
            return self._session.counters

    def close(self, *, leave: bool) -> None:
        """End the thread; without ``leave`` the others learn that this worker is lost.

        A worker that ends because another was lost is not lost itself: the first loss is named.
        """
        lost: InaError | None = self._session.failure
        self._session.close(leave=leave or isinstance(lost, WorkerLost | JobEnded))
