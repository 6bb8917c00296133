"""An error inside the daemon ends it loudly; the routes stay for its next life."""

import asyncio

import pytest

from fared.config import load_text
from fared.daemon.daemon import Daemon, DaemonError


class StandIn(Daemon):
    """The daemon without a kernel: only its life as a process."""

    def _open(self) -> None:
        self.withdrawn = False

    def _begin(self) -> None:
        asyncio.get_running_loop().call_soon(self.fail)

    def fail(self) -> None:
        raise ValueError("half done")

    async def _start_http(self) -> None:
        return None

    async def _shut_down(self) -> None:
        self.withdrawn = True


@pytest.fixture
def config(tmp_path, monkeypatch):
    class NoHealth:
        def __init__(self, _daemon) -> None:
            self.start = self.stop = lambda: None

    monkeypatch.setattr("fared.daemon.health.Health", NoHealth)
    return load_text(f"{{api: {{socket: {tmp_path}/s, http: 'off'}}, ospf: {{}}}}")


async def test_a_failed_callback_stops_the_daemon_and_keeps_its_routes(config):
    daemon = StandIn("x.yaml", config)
    with pytest.raises(DaemonError, match=r"half done.*routes stay"):
        await asyncio.wait_for(daemon.serve(), 10)
    assert not daemon.withdrawn
    assert any(record["event"] == "internal-error" for record in daemon.ring)


async def test_trouble_with_a_connection_is_only_logged(config, monkeypatch):
    monkeypatch.setattr(StandIn, "fail", lambda self: self._stop.set())
    daemon = StandIn("x.yaml", config)
    asyncio.get_running_loop().call_soon(
        lambda: daemon._exception(
            asyncio.get_running_loop(), {"message": "transport", "exception": OSError("reset")}
        )
    )
    await asyncio.wait_for(daemon.serve(), 10)
    assert daemon.withdrawn
