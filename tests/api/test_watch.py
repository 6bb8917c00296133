"""Events for browsers that watch the fabric, and questions about failures, over HTTP."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest

from bench.router import fabrics
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, clos3
from fared.extensions.sim.network import Network
from fared.management.api import http_server, watch
from fared.management.api.watch import FabricWatch
from fared.router import events
from tests.api.seen import seen_from
from tests.api.test_http import fetch
from tests.api.watched import Large, serving, watching
from tests.work import counting_calls


@pytest.fixture
def fabric():
    fabric = clos3(2, 3, network=Network(seed=1))
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    return fabric


async def document(port, name):
    """Status and JSON; a busy machine takes its time to start the solver."""
    url = f"http://127.0.0.1:{port}/api/v1/{name}"
    status, _, text = await asyncio.to_thread(fetch, url, "GET", 60)
    return status, json.loads(text)


async def until_watched(server_watch):  # an image has no event
    async with asyncio.timeout(30):
        while server_watch._image is None:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_watcher_learns_of_a_capacity_and_of_the_weakest_pair(fabric, monkeypatch):
    made = []
    monkeypatch.setattr(FabricWatch, "__init__", noting(FabricWatch.__init__, made))
    network = fabric.network
    async with serving(lambda: seen_from(fabric, "L1")) as port, watching(port) as following:
        assert await following() == ("begin", {})
        await until_watched(made[0])
        network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
        network.run_until_quiet(60)
        seen = {}
        while set(seen) != {"delta", "change", "weakest"}:
            name, data = await following()
            seen[name] = data
        _, document_now = await document(port, "fabric")
    (link,) = seen["delta"]["links"]
    assert (link["state"], seen["delta"]["lost"]) == ("reduced", [])
    weakest = seen["weakest"]["weakest"]
    assert weakest == document_now["weakest"]
    assert (weakest["to_hostname"], weakest["capacity"]) == ("L2", DEFAULT_CAPACITY * 5 / 4)


def noting(init, made):
    def wrapped(self, *args, **more):
        init(self, *args, **more)
        made.append(self)

    return wrapped


async def test_a_failed_link_is_lost_and_a_drained_router_resets(fabric, monkeypatch):
    made = []
    monkeypatch.setattr(FabricWatch, "__init__", noting(FabricWatch.__init__, made))
    network = fabric.network
    async with serving(lambda: seen_from(fabric, "L1")) as port, watching(port) as following:
        assert await following() == ("begin", {})
        await until_watched(made[0])
        network.set_link("S1", "L2", up=False)
        network.run_until_quiet(60)
        while True:
            name, data = await following()
            if name == "delta":
                break
        assert len(data["lost"]) == 2
        network.set_link("S1", "L2", up=True)
        network.input("S2", *drained(network, "S2"))
        network.run_until_quiet(60)
        while name != "reset":
            name, data = await following()


async def test_a_watcher_is_told_what_is_missing_and_when_it_is_back(fabric, monkeypatch):
    """Also one that came while it was missing."""
    made = []
    monkeypatch.setattr(FabricWatch, "__init__", noting(FabricWatch.__init__, made))

    def link(*, up):
        fabric.network.set_link("S1", "L2", up=up)
        fabric.network.run_until_quiet(60)

    async def missing(following, number):
        found = None
        while found is None or len(found) != number:
            name, data = await following()
            found = data["missing"] if name == "missing" else None
        return {(each["from_hostname"], each["to_hostname"]) for each in found}

    async with serving(lambda: seen_from(fabric, "L1")) as port:
        async with watching(port) as following:
            await following()
            await until_watched(made[0])
            link(up=False)
            assert await missing(following, 1) == {("S1", "L2")}
            link(up=True)
            assert await missing(following, 0) == set()
        async with asyncio.timeout(30):
            while made[0]._task is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        link(up=False)
        async with watching(port) as following:
            await following()
            await until_watched(made[0])
            link(up=True)
            assert await missing(following, 0) == set()


def drained(network, name):
    settings = network.nodes[name].settings.with_protocol("ospf", stub_router=True)
    return (events.RouterSettingsApplied(settings),)


async def test_nothing_runs_when_the_last_watcher_has_left(fabric, monkeypatch):
    made = []
    monkeypatch.setattr(FabricWatch, "__init__", noting(FabricWatch.__init__, made))
    async with serving(lambda: seen_from(fabric, "L1")) as port:
        async with watching(port) as following, watching(port) as other:
            assert await following() == await other() == ("begin", {})
            await until_watched(made[0])
            running = made[0]._task
        async with asyncio.timeout(30):
            await asyncio.wait([running])
        assert made[0]._task is made[0]._image is None
        assert not made[0]._queues
        assert "watch" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_too_many_watchers_are_refused_and_others_still_served(fabric, monkeypatch):
    monkeypatch.setattr(watch, "MOST_WATCHERS", 1)
    async with serving(lambda: seen_from(fabric, "L1")) as port, watching(port) as following:
        await following()
        status, answer = await document(port, "events")
        assert (status, answer["error"]["code"]) == (503, "busy")
        assert (await document(port, "fabric"))[0] == 200


async def test_watchers_of_one_address_do_not_keep_out_another(fabric, monkeypatch):
    monkeypatch.setattr(watch, "MOST_WATCHERS", 2)
    async with (
        serving(lambda: seen_from(fabric, "L1")) as port,
        watching(port),
        watching(port),
        watching(port, "127.0.0.2") as following,
    ):
        assert await following() == ("begin", {})


async def test_a_watcher_that_does_not_keep_up_gets_a_reset():
    seen = FabricWatch(lambda: None)
    queue = asyncio.Queue(2)
    seen._queues.add(queue)
    for number in range(3):
        seen._send(watch.event("delta", {"n": number}))
    assert [queue.get_nowait()] == [watch.event("reset", {})]


async def test_a_step_of_a_large_fabric_costs_what_changed():
    """64x512: hellos of neighbors do not wait for a watcher."""
    big = Large(64, 512)
    seen = FabricWatch(big.context)
    await seen._step()
    with counting_calls() as idle:
        await seen._step()
    queue = asyncio.Queue(99)
    seen._queues.add(queue)
    big.load(fabrics.spine(0), fabrics.leaf(5), 1e9, fabrics.RATE / 4)
    await seen._step()
    name, data, *_ = queue.get_nowait().decode().splitlines()
    assert name == "event: delta"
    (link,) = json.loads(data.removeprefix("data: "))["links"]
    assert (link["from"], link["to"]) == ("10.255.0.1", "10.254.0.6")
    links = 2 * 64 * 512
    assert idle.count < links / 2, "there is no call for each link"


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("", 400, "from must be the id"),
        ("?from=10.255.0.1&to=10.9.9.9", 400, "to must be the id"),
        ("?from=10.255.0.1&to=10.255.0.2", 404, "no link"),
        ("?from=10.255.0.1&to=10.255.0.3&share=7", 400, "from 0 to 1"),
    ],
)
async def test_questions_about_links_that_are_none_are_refused(fabric, query, status, words):
    async with serving(lambda: seen_from(fabric, "L1")) as port:
        found, answer = await document(port, f"what-if{query}")
    assert (found, words in answer["error"]["message"]) == (status, True)


@pytest.mark.parametrize("share", ["0", "0.25"])
async def test_what_would_change_is_what_the_offline_solver_says(fabric, tmp_path, share):
    """Beside ``fared-cli spf --diff`` with the same options, for each root."""
    context = seen_from(fabric, "L1")
    ids = {context.name(node): context.node(node) for node in context.hostnames}
    async with serving(lambda: seen_from(fabric, "L1")) as port:
        link = f"from={ids['S1']}&to={ids['L2']}&share={share}"
        status, answer = await document(port, f"what-if?{link}")
        _, lsdb = await document(port, "lsdb")
    assert status == 200
    assert {root["hostname"] for root in answer["roots"]} >= {"S1", "L2", "L1", "L3"}
    file = tmp_path / "db.json"
    file.write_text(json.dumps(lsdb))
    for root in answer["roots"]:
        assert root == offline(file, root["root"], root["hostname"], answer["changes"])
    assert any(root["routes"] for root in answer["roots"])
    assert answer["omitted"] == []


def offline(file, root, hostname, changes):
    from click.testing import CliRunner

    from fared.extensions.offline.cli.what_if import MOST_ROUTES
    from fared.management.cli.main import main

    words = [word for change in changes for word in ("--" + change).split(" ", 1)]
    command = ["spf", "--lsdb", str(file), "--root", root, "--diff", "--json", *words]
    found = json.loads(CliRunner().invoke(main, command).stdout)
    return {
        "root": root,
        "hostname": hostname,
        "changed": len(found["routes"]),
        "routes": found["routes"][:MOST_ROUTES],
        "unchanged": found["unchanged"],
    }


async def test_a_watcher_that_reads_nothing_is_dropped(fabric, monkeypatch):
    """Each event must be taken in time, though the stream has no end."""
    closed = asyncio.Event()

    async def flood(self, _client):
        try:
            while True:
                yield b":" + bytes(1 << 20)
        finally:
            closed.set()

    monkeypatch.setattr(FabricWatch, "events", flood)
    monkeypatch.setattr(http_server, "ANSWER_TIMEOUT", 0.2)
    async with serving(lambda: seen_from(fabric, "L1")) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.wait_for(closed.wait(), 30)
        writer.transport.abort()


async def test_a_server_that_stops_does_not_wait_for_watchers(fabric, monkeypatch):
    monkeypatch.setattr(http_server, "STOP_TIMEOUT", 250)
    async with (
        asyncio.timeout(60),
        AsyncExitStack() as stack,
        serving(lambda: seen_from(fabric, "L1")) as port,
    ):
        following = await stack.enter_async_context(watching(port))
        await following()
