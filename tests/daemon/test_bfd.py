"""BFD in the daemon: what protocols want and learn, and the process that is started for it."""

import asyncio
import os
import select
import signal
import time
from typing import Any

import msgspec
import pytest

from fared.core.bfd import BfdChanged, BfdStatus, BfdWanted, SessionSettings, Sha1Key
from fared.daemon.services import bfd, bfd_process
from fared.daemon.services.bfd import BfdClient
from fared.daemon.services.bfd_process import BfdSupervisor
from fared.protocols.bfd.messages import (
    CloseSession,
    OpenSession,
    Report,
    SessionKey,
    StateChange,
    Trouble,
)
from fared.protocols.bfd.packet import State
from fared.router import events
from fared.runtime import children
from tests.waiting import loop_until, wait_for

REMOTE = bytes((10, 0, 0, 1))
KEY = SessionKey(2, REMOTE)


class Log:
    """Records event names by level."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def __getattr__(self, level: str) -> Any:
        return lambda event, **_: self.lines.append((level, event))


class Still:
    """A supervisor without a process."""

    def __init__(self, answered, everything, request, log) -> None:
        self.answered, self.everything, self.request = answered, everything, request
        self.synced: list[SessionKey] = []

    def sync(self, key: SessionKey) -> None:
        self.synced.append(key)


def wish(settings: SessionSettings | None = SessionSettings()) -> BfdWanted:  # noqa: B008
    return BfdWanted(2, "swp1", bytes((10, 0, 0, 0)), REMOTE, settings)


def change(state: State, remote: State = State.DOWN, key: SessionKey = KEY) -> StateChange:
    return StateChange(key, state, remote, 1, 0, 11, 22)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> BfdClient:
    monkeypatch.setattr(bfd, "BfdSupervisor", Still)
    fed: list[events.To] = []
    made = BfdClient(fed.append, lambda call, *arguments: call(*arguments), Log())
    made.fed = fed
    return made


def statuses(client: BfdClient) -> list[tuple[str, BfdStatus]]:
    found = [(to.proto, to.event.status) for to in client.fed if isinstance(to.event, BfdChanged)]
    client.fed.clear()
    return found


def answer(client: BfdClient, given: object) -> None:
    client.supervisor.answered(given)


def test_protocols_learn_of_up_down_and_admin_down_only(client: BfdClient):
    client.want("ospf", wish())
    answer(client, change(State.DOWN))
    answer(client, change(State.INIT))
    assert statuses(client) == []
    answer(client, change(State.UP))
    answer(client, change(State.UP, State.UP))
    assert statuses(client) == [("ospf", BfdStatus.UP)]
    answer(client, change(State.DOWN, State.ADMIN_DOWN))
    assert statuses(client) == [("ospf", BfdStatus.ADMIN_DOWN)]
    answer(client, change(State.UP, State.UP))
    answer(client, change(State.DOWN))
    answer(client, change(State.INIT))
    assert statuses(client) == [("ospf", BfdStatus.UP), ("ospf", BfdStatus.DOWN)]


def test_protocols_learn_whether_bfd_of_the_neighbor_outlives_its_control_plane(client: BfdClient):
    client.want("bgp", wish())
    answer(client, change(State.UP, State.UP))
    answer(client, msgspec.structs.replace(change(State.DOWN), independent=True))
    assert [to.event.independent for to in client.fed] == [False, True]


def test_two_protocols_share_a_session_with_the_shorter_times(client: BfdClient):
    key = Sha1Key(1, b"x")
    client.want("ospf", wish(SessionSettings(300_000, 100_000, 5)))
    answer(client, change(State.UP))
    client.want("isis", wish(SessionSettings(200_000, 400_000, 3, key)))
    assert statuses(client) == [("ospf", BfdStatus.UP), ("isis", BfdStatus.UP)]
    request = client.supervisor.request(KEY)
    assert request.settings == SessionSettings(200_000, 100_000, 3, key)
    client.want("ospf", wish(None))
    assert client.supervisor.request(KEY).settings.min_rx == 400_000
    client.want("isis", wish(None))
    assert client.supervisor.request(KEY) == CloseSession(KEY)
    assert client.supervisor.synced == [KEY] * 4
    answer(client, change(State.DOWN))
    assert statuses(client) == []


def test_a_session_that_was_up_on_both_ends_is_resumed(client: BfdClient):
    client.want("ospf", wish())
    answer(client, change(State.UP, State.INIT))
    assert client.supervisor.request(KEY).discriminators is None
    answer(client, change(State.UP, State.UP))
    request = client.supervisor.request(KEY)
    assert isinstance(request, OpenSession)
    assert request.discriminators == (11, 22)
    answer(client, change(State.DOWN))
    assert client.supervisor.request(KEY).discriminators is None


def test_reports_are_taken_once_they_are_complete(client: BfdClient):
    answer(client, Report((), {"ttl": 1}, last=False))
    assert client.discarded == {}
    answer(client, Report((), {"ttl": 2}, last=True))
    assert client.discarded == {"ttl": 2}


def test_what_the_process_reports_is_logged(client: BfdClient):
    answer(client, Trouble("warning", "bfd-discarded", {"reason": "ttl"}))
    answer(client, Trouble("error", "bfd-socket", {}))
    assert client._log.lines == [("warning", "bfd-discarded"), ("error", "bfd-socket")]


# -- the process itself


@pytest.fixture
async def supervisor(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bfd_process, "ASK_INTERVAL", 0.05)
    log = Log()
    made = BfdSupervisor(lambda _: None, list, CloseSession, log)
    made.log = log
    made.sync(KEY)
    await loop_until(lambda: made.reported_at, 20, "the first report")
    yield made
    made.stop()


async def test_the_process_is_started_again_when_it_ends(supervisor: Any):
    assert supervisor.priority
    for starts in (2, 3):
        os.kill(supervisor.pid, signal.SIGKILL)
        await loop_until(lambda wanted=starts: supervisor.starts == wanted, 20, "another process")
        supervisor.reported_at = 0.0
        await loop_until(lambda: supervisor.reported_at, 20, "its report")
    ends = [line for line in supervisor.log.lines if line == ("error", "bfd-process-ended")]
    assert len(ends) == 2


async def test_a_process_that_waits_takes_the_place_of_one_that_ends(supervisor: Any):
    """It has been started: a new one would be later than the detection time of fast sessions."""
    await loop_until(lambda: supervisor.spare_pid, 20, "a process that waits")
    spare = supervisor.spare_pid
    os.kill(supervisor.pid, signal.SIGKILL)
    await loop_until(lambda: supervisor.starts == 2, 20, "another process")
    assert supervisor.pid == spare
    await loop_until(lambda: supervisor.spare_pid not in (None, spare), 20, "the next that waits")
    os.kill(supervisor.spare_pid, signal.SIGKILL)
    os.kill(spare, signal.SIGKILL)
    supervisor.reported_at = 0.0
    await loop_until(lambda: supervisor.reported_at, 20, "a report, though neither was left")


async def test_the_process_is_replaced_when_it_does_not_answer(
    supervisor: Any, monkeypatch: pytest.MonkeyPatch
):
    stopped = supervisor.pid
    os.kill(stopped, signal.SIGSTOP)
    with monkeypatch.context() as only_the_stopped_one:
        only_the_stopped_one.setattr(bfd_process, "_ANSWER_WITHIN", 0.2)
        await loop_until(lambda: supervisor.starts == 2, 20, "another process")
    await loop_until(lambda: supervisor.pid not in (None, stopped), 20, "another pid")
    assert ("error", "bfd-process-silent") in supervisor.log.lines
    with pytest.raises(ProcessLookupError):
        os.kill(stopped, 0)


async def test_starts_after_failures_have_growing_delays(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(children.sys, "executable", "/bin/false")
    monkeypatch.setattr("fared.runtime.supervisor.FIRST_DELAY", 0.01)
    monkeypatch.setattr("fared.runtime.supervisor.LONGEST_DELAY", 0.04)
    made = BfdSupervisor(lambda _: None, list, CloseSession, Log())
    delays: list[float] = []
    loop = asyncio.get_running_loop()
    later = loop.call_later

    def call_later(delay, call, *arguments):
        if call == made._start:
            delays.append(delay)
        return later(delay, call, *arguments)

    monkeypatch.setattr(loop, "call_later", call_later)
    made.sync(KEY)
    await loop_until(lambda: len(delays) >= 5, 20, "five starts")
    made.stop()
    assert delays[:5] == [0.0, 0.01, 0.02, 0.04, 0.04]


async def test_a_process_that_is_stopped_ends_and_is_not_started_again(supervisor: Any):
    await loop_until(lambda: supervisor.spare_pid, 20, "a process that waits")
    pids = supervisor.pid, supervisor.spare_pid
    supervisor.stop()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    supervisor.sync(KEY)
    assert supervisor.pid is None


async def test_a_loop_that_was_away_does_not_take_the_process_for_silent(
    supervisor: Any, monkeypatch: pytest.MonkeyPatch
):
    """It has asked; the answer comes while it computes for longer than an answer may take."""
    os.kill(supervisor.pid, signal.SIGSTOP)
    await loop_until(lambda: supervisor._asked_at is not None, 20, "a request without answer")
    os.kill(supervisor.pid, signal.SIGCONT)
    sock = supervisor._server.connection.sock
    wait_for(lambda: select.select([sock], [], [], 0.0)[0], 20, "an answer")
    time.sleep(bfd_process.ASK_INTERVAL)  # noqa: ASYNC251 - the next request is due
    supervisor.reported_at = 0.0
    with monkeypatch.context() as while_away:
        while_away.setattr(bfd_process, "_ANSWER_WITHIN", 0.0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # behind what was ready in the first turn
    await loop_until(lambda: supervisor.reported_at, 20, "a report")
    assert supervisor.starts == 1
    assert ("error", "bfd-process-silent") not in supervisor.log.lines
