"""Exceptions in the daemon are logged, and it continues; if it only fails, it ends."""

import asyncio
import errno
from types import SimpleNamespace

import pytest

from fared.config import Loaded, load_text
from fared.daemon import daemon as daemon_module
from fared.daemon.daemon import Daemon
from fared.daemon.loop.errors import DaemonError
from tests.waiting import loop_until


class StandIn(Daemon):
    """The daemon without a kernel: only its life as a process."""

    def _open(self) -> SimpleNamespace:
        self.withdrawn = False
        return SimpleNamespace(
            begin=self._begin,
            health=SimpleNamespace(start=lambda: None, stop=lambda: None),
            changes=SimpleNamespace(reloader=SimpleNamespace(hang_up=lambda: None)),
            services=SimpleNamespace(end_recording=self._nothing),
        )

    async def _begin(self) -> None:
        asyncio.get_running_loop().call_soon(self.fail)

    async def _nothing(self) -> None:
        pass

    def fail(self) -> None:
        raise ValueError("half done")

    def _start_http(self, _: object) -> None:
        return None

    async def _shut_down(self, _: object) -> None:
        self.withdrawn = True


@pytest.fixture
def config(tmp_path):
    return load_text(f"{{api: {{socket: {tmp_path}/s, http: 'off'}}, ospf: {{}}}}")


async def test_a_failed_callback_is_logged_and_the_daemon_continues(config):
    daemon = StandIn("x.yaml", Loaded(config))
    running = asyncio.create_task(daemon.serve())
    await loop_until(lambda: daemon.defence.counts["event loop"])
    daemon._stop.set()
    await asyncio.wait_for(running, 30)
    assert daemon.withdrawn
    (record,) = [record for record in daemon._logs.ring if record["event"] == "internal-error"]
    assert "ValueError: half done" in record["fields"]["exception"]


async def test_repeated_failures_of_the_router_end_the_daemon_and_keep_its_routes(
    config, monkeypatch
):
    monkeypatch.setattr(StandIn, "fail", lambda self: self._give_up(ValueError("half done")))
    daemon = StandIn("x.yaml", Loaded(config))
    with pytest.raises(DaemonError, match=r"half done.*routes stay"):
        await asyncio.wait_for(daemon.serve(), 30)
    assert not daemon.withdrawn


class Closed(asyncio.Transport):
    """The transport of a client that has left."""

    def is_closing(self) -> bool:
        return True


async def test_a_client_that_connects_while_the_daemon_stops_is_no_error(config, monkeypatch):
    def fail(self) -> None:
        connected = asyncio.StreamReaderProtocol(
            asyncio.StreamReader(), lambda *_: asyncio.sleep(9)
        )
        connected.connection_made(Closed())
        (task,) = (t for t in asyncio.all_tasks() if "sleep" in repr(t))
        task.cancel()
        asyncio.get_running_loop().call_later(0.1, self._stop.set)

    monkeypatch.setattr(StandIn, "fail", fail)
    daemon = StandIn("x.yaml", Loaded(config))
    await asyncio.wait_for(daemon.serve(), 30)
    assert not daemon.defence.counts


async def test_a_failed_connection_is_only_logged(config, monkeypatch):
    monkeypatch.setattr(StandIn, "fail", lambda self: self._stop.set())
    daemon = StandIn("x.yaml", Loaded(config))
    asyncio.get_running_loop().call_soon(
        lambda: daemon._exception(
            asyncio.get_running_loop(), {"message": "transport", "exception": OSError("reset")}
        )
    )
    await asyncio.wait_for(daemon.serve(), 30)
    assert daemon.withdrawn


@pytest.mark.parametrize("short", ["views", "history"])
async def test_views_and_history_begin_once_there_are_descriptors_again(
    config, monkeypatch, short: str
):
    attempts = {"views": 0, "history": 0}

    async def begin(what: str) -> None:
        attempts[what] += 1
        if what == short and attempts[what] < 3:
            raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(daemon_module, "VIEWS_AFTER", 0.0)
    monkeypatch.setattr(StandIn, "fail", lambda _: None)
    daemon = StandIn("x.yaml", Loaded(config))
    parts = SimpleNamespace(
        views=SimpleNamespace(load=lambda: begin("views")),
        changes=SimpleNamespace(started=lambda: begin("history")),
    )
    await asyncio.wait_for(daemon._load_views(parts), 30)
    assert attempts == {"views": 1, "history": 1} | {short: 3}
    assert not daemon.defence.counts
