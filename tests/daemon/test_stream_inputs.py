"""A protocol over TCP is plugged into router and daemon: its engine has streams and no packets."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from fared.core import streams
from fared.core.links import Link
from fared.daemon.loop.defence import Defence
from fared.daemon.loop.inputs import Inputs
from fared.daemon.loop.streams.edge import StreamEdge
from fared.daemon.people.counters import counters_of
from fared.extensions.lab.namespaces import Netns
from fared.kernel.errors import PrivilegeError
from fared.paths.fib.simulated import SimulatedFib
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.protocols import PROTOCOLS, Started
from fared.router.router import Router
from fared.router.settings import RouterSettings
from tests.daemon.stage import Lenient
from tests.daemon.stream_ends import PORT
from tests.router.toy import TOY, ToyEngine, ToySettings
from tests.waiting import loop_until

pytestmark = pytest.mark.netns
HOSTS = {1: "127.0.0.1", 2: "127.0.0.2"}


class Talker(ToyEngine):
    """Speaks over a stream: router 2 connects to router 1, and each greets the other."""

    def __init__(self, settings: ToySettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self.heard, self.closed = b"", ""
        self.open: dict[streams.StreamId, int] = {}

    def handle(self, event: Any, now: float) -> None:
        self._process.now, self.settled = now, False
        emit = self._process.emit
        match event:
            case igp.LinkChanged():
                self._begin()
            case streams.StreamOpened(stream):
                self.open[stream] = 0
                emit(streams.SendStream(stream, f"hello of {self.settings.router_id}".encode()))
            case streams.StreamSent(stream, count):
                self.open[stream] += count
            case streams.StreamReceived(_, data):
                self.heard += data
            case streams.StreamClosed(stream, reason):
                self.closed = reason
            case igp.ShutdownRequested():
                for stream in self.open:
                    emit(streams.SendStream(stream, b", farewell"))
                    emit(streams.CloseStream(stream))

    def _begin(self) -> None:
        me = self.settings.router_id
        transport = streams.Transport(HOSTS[3 - me], local=HOSTS[me])
        if me == 1:
            self._process.emit(streams.Listen((streams.Listener(2, transport),), PORT))
        else:
            self._process.emit(streams.Connect(streams.StreamId(1, False, 1), transport))


class Fake(SimulatedFib, Lenient):
    notices = Lenient()
    foreign = MappingProxyType({})


class Host:
    """The inputs of a daemon, with a fake kernel."""

    def __init__(self, number: int) -> None:
        talking = {**PROTOCOLS, "talk": _talk()}
        settings = RouterSettings({"talk": ToySettings(number, 0xC0A80000 | number << 8)})
        router = Router(settings, random.Random(number), 0.0, lambda: 0.0, talking)
        log = SimpleNamespace(**dict.fromkeys(("debug", "info", "warning", "error"), self._log))
        monitor = Lenient()
        monitor.links, monitor.arrived = {}, 0.0
        self.said: list[str] = []
        self.jobs: list[Any] = []
        self.inputs = Inputs(
            router,
            SimpleNamespace(fib=Fake(), table=Fake(), monitor=monitor, sysctls=Lenient()),  # type: ignore[arg-type]
            Lenient(),
            request_audit=lambda _: None,
            on_tick=lambda _: None,
            every=lambda *job: self.jobs.append(job),
            wants_debug=lambda: False,
            log=log,
            defence=Defence(log),
        )

    def _log(self, event: str, **_: object) -> None:
        self.said.append(event)

    @property
    def engine(self) -> Talker:
        found = self.inputs.runner.router.instances["talk"].engine
        assert isinstance(found, Talker)
        return found

    def begin(self) -> None:
        link = Link(1, "lo", True, 65536, (), loopback=True)
        self.inputs.runner.feed(events.To("talk", igp.LinkChanged(link, None)), events.LinksKnown())

    def close(self) -> None:
        self.inputs.runner.stop()
        self.inputs.close()


def _talk() -> Any:
    def start(settings: ToySettings, rng: Any) -> Started:
        toy = TOY.start(settings, rng)
        return Started(Talker(settings, rng), toy.root, toy.families)

    from msgspec.structs import replace

    return replace(TOY, name="talk", start=start)


@pytest.fixture
async def hosts() -> Any:
    """Two of them in one network namespace, in which the loop of the test runs, too."""
    netns = Netns.create(f"talk{random.SystemRandom().randrange(16**6):06x}")
    try:
        with netns.entered():
            made = {number: Host(number) for number in HOSTS}
            try:
                yield made
            finally:
                for host in made.values():
                    host.close()
    finally:
        netns.delete()


async def meet(hosts: dict[int, Host]) -> Iterator[Talker]:
    for host in hosts.values():
        host.begin()
    first, second = (host.engine for host in hosts.values())
    await loop_until(lambda: (first.heard, second.heard) == (b"hello of 2", b"hello of 1"))
    return first, second  # type: ignore[return-value]


async def test_engines_talk_and_are_told_how_much_has_gone(hosts):
    assert all(host.inputs.io == host.inputs.streams == {} for host in hosts.values())
    first, second = await meet(hosts)
    assert [*first.open.values(), *second.open.values()] == [10, 10]
    counters = counters_of(
        hosts[1].inputs.runner.router,
        sockets=hosts[1].inputs.counters,
        operations={},
        loads={"ok": 0, "failed": 0},
        edge={},
    )
    assert counters["talk"]["sockets"] == {"accepted": 1}
    assert hosts[1].said == hosts[2].said == ["stage-reached"] * len(hosts[1].said)


async def test_what_streams_bring_counts_as_packets_of_a_flood(hosts):
    """Memory is returned after a table was learnt, too."""
    _, second = await meet(hosts)
    (stream,) = second.open
    before = hosts[1].inputs.taken
    data = b"x" * 300_000
    hosts[2].inputs.streams["talk"].perform(streams.SendStream(stream, data))
    await loop_until(lambda: hosts[1].engine.heard.endswith(data))
    assert hosts[1].inputs.taken - before == len(data) // 100


async def test_a_farewell_goes_out_before_the_daemon_closes_its_sockets(hosts):
    first, second = await meet(hosts)
    hosts[2].inputs.runner.feed(igp.ShutdownRequested())
    hosts[2].close()
    await loop_until(lambda: first.closed)
    assert first.heard == b"hello of 2, farewell"
    assert (first.closed, second.closed) == ("it closed the connection", "")


async def test_without_a_farewell_neighbors_see_only_that_the_connection_ends(hosts):
    """So a graceful restart begins."""
    first, _ = await meet(hosts)
    hosts[2].close()
    await loop_until(lambda: first.closed)
    assert first.heard == b"hello of 2"


async def test_after_a_delay_streams_are_read_before_timers_fire(hosts):
    """A hold timer must not end a session whose messages have arrived."""
    first, second = await meet(hosts)
    (stream,) = second.open
    edge = hosts[2].inputs.streams["talk"]
    edge.perform(streams.SendStream(stream, b", still there"))
    edge._end_turn()
    hosts[1].inputs._catch_up()
    assert first.heard == b"hello of 2, still there"


async def test_a_capability_that_is_missing_at_start_ends_the_daemon(hosts, monkeypatch):
    def denied(*_: object) -> None:
        raise PrivilegeError("CAP_NET_BIND_SERVICE", "listen on port 179")

    monkeypatch.setattr(StreamEdge, "perform", denied)
    with pytest.raises(PrivilegeError, match="CAP_NET_BIND_SERVICE"):
        hosts[1].begin()
