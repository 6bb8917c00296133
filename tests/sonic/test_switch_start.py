"""The start of FPM on a switch: two processes, and a double of ``fpmsyncd`` with a real Redis."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fared.config import load
from fared.daemon.loop.defence import Defence
from fared.daemon.services import fpm, switch_start
from fared.daemon.services.fpm import FpmService
from fared.daemon.services.switch_start import SwitchStart
from fared.paths.fib.model import FibState
from fared.sonic.protocols import protocol_words
from tests.daemon.stage import Stage as DaemonStage
from tests.fib.helpers import Bench, prefix
from tests.fpm.fpmsyncd import Connection, Fpmsyncd
from tests.fpm.peers import NAMES
from tests.fpm.server import FpmServer, rows_in
from tests.waiting import loop_until

PROTOCOL = 201
FOREIGN = "10.99.0.0/16"


class Switch(FpmServer):
    """``vanished`` are keys that Redis was without; ``told`` is EOIU as each client connects."""

    def __init__(self, server: Any) -> None:
        self.redis, self.vanished, self.told = server, set[str](), list[set[str]]()
        switch = self

        class Double(Fpmsyncd):
            def connect(self) -> Connection:
                switch.told.append(switch.eoiu())
                return super().connect()

        super().__init__(Double(NAMES), server.db("APPL_DB"))

    def _write_rows(self) -> None:
        self.vanished |= {key for key in self.rows.changed if key not in self.rows}
        super()._write_rows()

    def eoiu(self) -> set[str]:
        with self.redis.db("STATE_DB") as client:
            keys = client.keys("BGP_STATE_TABLE|*|eoiu")
            return {k.decode().split("|")[1] for k in keys if client.hget(k, "state") == b"reached"}

    def rows_of(self) -> dict[str, dict[str, str]]:
        with self.redis.db("APPL_DB") as client:
            return rows_in(client)


class Process:
    """A planner with routes, and what runs beside it."""

    def __init__(self, switch: Switch) -> None:
        self.bench, self.log, self.switch = Bench(), list[str](), switch
        log: Any = SimpleNamespace(
            info=lambda event, **_: self.log.append(event),
            warning=lambda event, **_: self.log.append(event),
        )
        config = load(
            "ospf: {areas: {0: {interfaces: {'swp*': {}}}}}\n"
            f"fib: {{fpm: {{address: 127.0.0.1, port: {switch.port}}}}}"
        )
        links: Any = {index: SimpleNamespace(name=name) for index, name in NAMES.items()}
        self.fpm = FpmService(config, lambda: self.bench.planner, lambda: links, log, Defence(log))
        self.start = SwitchStart(self.fpm, switch.redis.databases, PROTOCOL, log)

    def put(self, numbers: range, weights: dict[int, int]) -> None:
        self.bench.put(numbers, weights)
        self.fpm.pull()

    @property
    def settled(self) -> bool:
        return self.fpm.session.replayed and not self.fpm.session.waiting

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Process]:
        self.start.start()
        self.fpm.start(self.start.prepared)
        try:
            yield self
        finally:
            self.start.stop()
            self.fpm.stop()
            await loop_until(lambda: not self.switch.double.connections)


@pytest.fixture
async def switch(server, monkeypatch) -> AsyncIterator[Switch]:
    monkeypatch.setattr(fpm, "RETRY", 0.01)
    monkeypatch.setattr(switch_start, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(switch_start, "_STATE_EVERY", 0.01)
    monkeypatch.setattr(switch_start, "_PAUSE", 0.01)
    made = Switch(server)
    await made.start()
    yield made
    await made.stop()


async def first_process(switch: Switch, routes: range) -> None:
    """Leave the rows of a process that has ended, and one of another protocol."""
    switch.redis.set("APPL_DB", f"ROUTE_TABLE:{FOREIGN}", protocol="static", nexthop="10.0.0.1")
    first = Process(switch)
    first.put(routes, {1: 1, 2: 2})
    async with first.running():
        first.start.routes_known()
        await loop_until(lambda: first.settled and len(switch.eoiu()) == 2)
    assert set(switch.rows_of()) == {FOREIGN, *map(str, map(prefix, routes))}
    assert not switch.vanished


async def test_a_new_process_deletes_rows_that_nobody_wants_once_routes_are_known(switch):
    await first_process(switch, range(6))
    before = switch.rows_of()
    second = Process(switch)
    second.put(range(3), {1: 1, 2: 2})
    async with second.running():
        await loop_until(lambda: second.settled)
        for _ in range(3):  # as long as it would take to bury them now
            await second.start._inherit()
        assert second.settled
        assert switch.rows_of() == before
        assert switch.eoiu() == set()
        late = "10.77.0.0/16"  # which the peer has read only now
        switch.redis.set("APPL_DB", f"ROUTE_TABLE:{late}", protocol=f"0x{PROTOCOL:x}")
        second.put(range(3, 4), {1: 1, 2: 7})
        second.start.routes_known()
        await loop_until(lambda: second.settled and len(switch.eoiu()) == 2)
        gone = {str(prefix(4)), str(prefix(5))}
        await loop_until(lambda: switch.vanished == {*gone, late})
        after = switch.rows_of()
        assert set(before) - set(after) == gone
        assert {key for key in after if after[key] != before[key]} == {str(prefix(3))}
    assert switch.told == [set(), set()]
    assert second.log == ["fpm-rows-inherited", "fpm-connected", "fpm-replayed"]


async def test_a_peer_that_restarts_gets_everything_again_and_no_row_vanishes(switch):
    process = Process(switch)
    process.put(range(6), {1: 1, 2: 2})
    async with process.running():
        process.start.routes_known()
        await loop_until(lambda: process.settled and len(switch.eoiu()) == 2)
        before, sent = switch.rows_of(), process.fpm.session.counts["put"]
        await switch.stop()
        await loop_until(lambda: not switch.eoiu())
        await switch.start()
        await loop_until(lambda: process.settled and len(switch.eoiu()) == 2)
        assert process.fpm.session.counts["put"] == sent + 6
        assert switch.rows_of() == before
    assert not switch.vanished
    assert switch.told == [set(), set()]


async def test_the_end_of_routes_is_told_only_after_the_replay(switch):
    switch.redis.set("STATE_DB", "WARM_RESTART_ENABLE_TABLE|bgp", enable="true")
    switch.redis.set("STATE_DB", "WARM_RESTART_TABLE|bgp", state="restored")
    await switch.stop()
    process = Process(switch)
    process.put(range(2), {1: 1})
    async with process.running():
        process.start.routes_known()
        await loop_until(lambda: "fpm-not-connected" in process.log)
        assert process.start.prepared.is_set()
        assert switch.eoiu() == set()
        assert process.fpm.warm_restart == "restored"
        await switch.start()
        await loop_until(lambda: len(switch.eoiu()) == 2)
        assert process.fpm.session.replayed
        switch.redis.set("STATE_DB", "WARM_RESTART_TABLE|bgp", state="reconciled")
        await loop_until(lambda: process.fpm.warm_restart == "reconciled")


async def test_without_redis_fpm_works_it_is_said_once_and_the_rest_follows(switch, monkeypatch):
    await first_process(switch, range(3))
    monkeypatch.setattr(fpm, "_PREPARED_WITHIN", 0.05)
    switch._database = None  # what the double does is not in question
    switch.redis.stop()
    monkeypatch.setattr(switch.double, "connect", lambda: Fpmsyncd.connect(switch.double))
    process = Process(switch)
    process.put(range(1), {1: 1})
    async with process.running():
        process.start.routes_known()
        await loop_until(lambda: process.settled)
        assert process.fpm.warm_restart is None
        assert not process.start.prepared.is_set()
        switch.redis.start()
        switch.redis.set("APPL_DB", f"ROUTE_TABLE:{prefix(2)}", protocol=f"0x{PROTOCOL:x}")
        await loop_until(lambda: switch.eoiu() == {"IPv4", "IPv6"})
        await loop_until(lambda: str(prefix(2)) in switch.vanished)
    assert process.log.count("sonic-start-not-told") == 1


async def test_a_daemon_on_sonic_takes_over_the_rows_of_its_predecessor(
    switch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    await first_process(switch, range(3))
    stage = DaemonStage(tmp_path, monkeypatch)
    stage.fib.state = FibState(nexthops={7: (0, 4, 0, False)}, routes={prefix(0): 7})
    platform = f"platform: {{kind: sonic, databases: {switch.redis.file}"
    stage.write(on_exit=f"keep, fpm: {{port: {switch.port}}}}}\n{platform}")
    async with stage.running() as daemon:
        assert daemon.parts is not None
        services, runner = daemon.parts.services, daemon.parts.runner
        assert services.fpm is not None
        await asyncio.wait_for(services.fpm.replayed.wait(), 10)
        assert {str(prefix(n)) for n in range(3)} < set(switch.rows_of())
        assert switch.eoiu() == set()
        runner.router.startup.deadline = -60.0  # no neighbor will come
        runner.feed()
        await loop_until(lambda: switch.eoiu() == {"IPv4", "IPv6"})
        await loop_until(lambda: set(switch.rows_of()) == {FOREIGN})
    await loop_until(lambda: not switch.double.connections)


def test_a_protocol_has_the_names_of_files_and_a_number(tmp_path):
    file = tmp_path / "rt_protos"
    file.write_text("# names\n201 Fared # ours\n0xc9\tmine\n188 ospf\nx y\n201\n")
    found = protocol_words(PROTOCOL, (str(tmp_path / "none"), str(file)))
    assert found == {"0xc9", "fared", "mine"}
