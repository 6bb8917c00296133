"""The service of FPM on real sockets, with the double of ``fpmsyncd`` behind a server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fared.config import load
from fared.daemon.change.settings import router_settings
from fared.daemon.loop.defence import Defence
from fared.daemon.services import fpm
from fared.daemon.services.fpm import FpmService
from fared.paths.fib.model import FibState
from tests.daemon.stage import Stage as DaemonStage
from tests.fib.helpers import Bench, prefix
from tests.fpm.fpmsyncd import Fpmsyncd
from tests.fpm.peers import NAMES
from tests.waiting import loop_until

PROTOCOLS = {201: "ospf"}


class Log(list[tuple[str, dict[str, Any]]]):
    """Lines of the log."""

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda event, **fields: self.append((event, fields))

    def names(self) -> list[str]:
        return [name for name, _ in self]


class Server:
    """Serves the double; ``reads`` cleared: it takes nothing from its socket."""

    def __init__(self) -> None:
        self.peer = Fpmsyncd(NAMES, PROTOCOLS)
        self.reads = asyncio.Event()
        self.reads.set()
        self.writers: list[asyncio.StreamWriter] = []
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        listening = socket.create_server(("127.0.0.1", self.port))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        self._server = await asyncio.start_server(self._serve, sock=listening, limit=4096)
        self.port = listening.getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.lose()
        await asyncio.sleep(0)

    def lose(self) -> None:
        """Lose all connections."""
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = self.peer.connect()
        self.writers.append(writer)
        try:
            while data := await reader.read(4096):
                await self.reads.wait()
                self.peer.send(client, data)
                writer.write(client.read())
        except ConnectionError:
            pass
        self.peer.close(client)


class Stage:
    """A planner with its table, and the service that follows it."""

    def __init__(self, server: Server, text: str = "") -> None:
        self.server, self.log, self.bench = server, Log(), Bench()
        lead = "ospf: {areas: {0: {interfaces: {'swp*': {}}}}}\n"
        self.config = load(f"{lead}fib: {{fpm: {{address: 127.0.0.1, port: {server.port}}}{text}}}")
        self.links = {index: SimpleNamespace(name=name) for index, name in NAMES.items()}
        self.service = FpmService(
            self.config,
            lambda: self.bench.planner,
            lambda: self.links,
            self.log,
            Defence(self.log),
        )

    def put(self, numbers: range, weights: dict[int, int]) -> None:
        self.bench.put(numbers, weights)
        self.service.pull()

    async def settled(self) -> None:
        """Wait until all is acknowledged, and rows are the routes."""
        session = self.service.session
        await loop_until(lambda: session.replayed and not session.waiting)
        assert set(self.server.peer.rows) == {str(p) for p in self.bench.kernel.state.routes}


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Stage], Awaitable[None]]], Log]:
    monkeypatch.setattr(fpm, "RETRY", 0.01)
    monkeypatch.setattr(fpm, "_WATCH_EVERY", 0.01)

    def run(story: Callable[[Stage], Awaitable[None]]) -> Log:
        async def whole() -> Log:
            server = Server()
            await server.start()
            stage = Stage(server)
            stage.put(range(3), {1: 1, 2: 2})
            stage.service.start()
            try:
                await story(stage)
            finally:
                stage.service.stop()
                await server.stop()
            return stage.log

        return asyncio.run(whole())

    return run


def test_routes_arrive_with_changes_and_are_withdrawn_at_the_end(play) -> None:
    async def story(stage: Stage) -> None:
        await stage.settled()
        assert stage.service.replayed.is_set()
        assert stage.server.peer.rows[str(prefix(0))]["weight"] == "1,2"
        stage.put(range(1), {1: 1, 2: 7})
        await stage.settled()
        assert stage.server.peer.rows[str(prefix(0))]["weight"] == "1,7"
        assert stage.service.session.offloaded(prefix(0))
        stage.bench.carry_out(stage.bench.planner.withdraw())
        await stage.service.finish()
        await loop_until(lambda: not stage.server.peer.rows)

    assert play(story).names() == ["fpm-connected", "fpm-replayed"]


def test_a_lost_peer_is_said_and_gets_everything_again(play) -> None:
    async def story(stage: Stage) -> None:
        await stage.settled()
        await stage.server.stop()
        await loop_until(lambda: "fpm-not-connected" in stage.log.names())
        assert not stage.service.replayed.is_set()
        stage.bench.remove((0,))
        stage.put(range(5, 9), {1: 1})
        await stage.server.start()
        await stage.settled()

    log = play(story)
    assert log.names()[:3] == ["fpm-connected", "fpm-replayed", "fpm-lost"]
    assert log.names()[-2:] == ["fpm-connected", "fpm-replayed"]


def test_a_peer_that_does_not_read_is_said_and_holds_up_nothing(play, monkeypatch) -> None:
    monkeypatch.setattr(fpm, "_SLOW_AFTER", 0.0)
    monkeypatch.setattr(fpm, "_MOST_BUFFERED", 1 << 12)
    many = 400

    async def story(stage: Stage) -> None:
        await stage.settled()
        assert stage.service._transport is not None
        own = stage.service._transport.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 12)
        stage.server.reads.clear()
        links = range(1, 7)
        for weight in range(1, 200):
            stage.put(range(many), dict.fromkeys(links, 1) | {1: 1 + weight})
            await asyncio.sleep(0)
            assert stage.service.session.waiting <= 2 * many
            if stage.service.slow:
                break
        assert stage.service.slow
        await loop_until(lambda: "fpm-peer-slow" in stage.log.names())
        stage.server.reads.set()
        await stage.settled()

    play(story)


def test_silence_of_acknowledgements_ends_the_connection(play) -> None:
    async def story(stage: Stage) -> None:
        await stage.settled()
        stage.server.peer.suppress = True
        stage.service.session.acks.patience = 0.0
        stage.put(range(1), {1: 1, 2: 7})
        await loop_until(lambda: "fpm-lost" in stage.log.names())
        stage.server.peer.suppress = False
        stage.service.session.acks.patience = 10.0
        await stage.settled()

    log = play(story)
    (fields,) = [fields for name, fields in log if name == "fpm-lost"]
    assert fields["reason"] == "nothing is acknowledged"


def test_next_hops_that_are_withheld_are_said_until_the_link_has_a_name(play) -> None:
    async def story(stage: Stage) -> None:
        link = stage.links.pop(1)
        await loop_until(lambda: len(stage.service.session.withheld) == 3)
        assert {row["ifname"] for row in stage.server.peer.rows.values()} <= {
            f"{NAMES[1]},{NAMES[2]}",
            NAMES[2],
        }
        stage.links[1] = link
        await stage.settled()
        await loop_until(lambda: not stage.service.session.withheld)

    assert "fpm-next-hops-withheld" in play(story).names()


def test_weights_fit_into_eight_bits_where_routes_go_by_fpm() -> None:
    lead = "ospf: {areas: {0: {interfaces: {'swp*': {}}}}}\n"
    texts = ("", "fib: {fpm: {}}", "fib: {fpm: {}, max-weight: 16}")
    found = [router_settings(load(lead + text), 1, "r").solver.max_weight for text in texts]
    assert found == [256, 255, 16]


@pytest.mark.parametrize("kernel", ["true", "false"])
async def test_a_daemon_mirrors_what_it_adopts_until_a_reload_ends_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str
) -> None:
    """Without routes in the kernel those of a former process are removed there, and not sent."""
    server, stage = Server(), DaemonStage(tmp_path, monkeypatch)
    await server.start()
    stage.fib.state = FibState(nexthops={7: (0, 4, 0, False)}, routes={prefix(0): 7})
    stage.write(on_exit=f"withdraw, kernel: {kernel}, fpm: {{port: {server.port}}}")
    async with stage.running() as daemon:
        assert daemon.parts is not None
        services = daemon.parts.services
        assert services.fpm is not None
        await asyncio.wait_for(services.fpm.replayed.wait(), 10)
        session = services.fpm.session
        await loop_until(lambda: not session.waiting)
        assert set(server.peer.rows) == ({str(prefix(0))} if kernel == "true" else set())
        assert bool(stage.fib.state.routes) is (kernel == "true")
        stage.write(on_exit=f"withdraw, kernel: {kernel}, fpm: {{port: {server.port}}}")
        await daemon.parts.changes.reloader.reload()
        assert services.fpm is not None
        assert services.fpm.session is session
        if kernel == "true":
            stage.write()
            await daemon.parts.changes.reloader.reload()
            assert services.fpm is None
    await loop_until(lambda: not server.peer.connections)
    await server.stop()


async def test_a_daemon_that_ends_withdraws_its_routes_from_the_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, stage = Server(), DaemonStage(tmp_path, monkeypatch)
    await server.start()
    stage.fib.state = FibState(nexthops={7: (0, 4, 0, False)}, routes={prefix(0): 7})
    stage.write(on_exit=f"withdraw, fpm: {{port: {server.port}}}")
    async with stage.running():
        await loop_until(lambda: server.peer.rows)
    await loop_until(lambda: not server.peer.rows)
    await server.stop()
