"""Reloads: steps in a thread beside the event loop, and steps in slices inside it."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fared.config import load_runnable
from fared.core.links import Link
from fared.daemon.change import reload as module
from fared.daemon.change.reload import SLICE, Reloader
from fared.daemon.change.settings import link_events
from fared.management.api.requests import ConfigDiffRequest

OSPF = "ospf: {areas: {0: {interfaces: {'swp*': {cost: %d}}}}}\n"


class Host:
    """A daemon reduced to the parts that a reload uses."""

    def __init__(self, file: Path, links: int = 1) -> None:
        self.path = str(file)
        self.config = load_runnable(file).config
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.fed: list[Any] = []
        self.order: list[str] = []
        self.runtime = SimpleNamespace(last_reload_ok=None, last_reload_error=None, loaded_at=0.0)
        self.notifier = SimpleNamespace(
            reloading=lambda: self.order.append("reloading"),
            ready=self._ready,
        )
        self.log = SimpleNamespace(info=self._say, warning=self._say, error=self._say)
        self.monitor = SimpleNamespace(
            links={n: Link(n, f"swp{n}", True, 1500) for n in range(1, links + 1)}
        )
        self.startup = SimpleNamespace(ready=True)
        self.runner = SimpleNamespace(
            feed_all=self.feed_all, router=SimpleNamespace(startup=self.startup)
        )
        self.ends = False
        self.told_ready = asyncio.Event()

    def reloader(self, **more: Any) -> Reloader:
        return Reloader(
            self,
            self,
            lambda link, config: link_events(config, link),
            runner=self.runner,
            monitor=self.monitor,
            runtime=self.runtime,
            notifier=self.notifier,
            log=self.log,
            **more,
        )

    def _ready(self) -> None:
        self.order.append("ready")
        self.told_ready.set()

    def _say(self, event: str, **fields: Any) -> None:
        self.said.append((event, fields))

    def feed_all(self, inputs: Any) -> None:
        self.fed += inputs
        self.order.append("links")

    def reconfigured(self) -> None:
        self.order.append("settings")

    def watch_routes(self) -> None:
        self.order.append("routes")

    def stopping(self) -> bool:
        return self.ends


async def turns_during(coroutine: Any) -> tuple[int, Any]:
    """Count the turns of the loop while a coroutine runs."""
    task = asyncio.ensure_future(coroutine)
    turns = 0
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    return turns, task.result()


def test_the_file_is_read_beside_the_loop(tmp_path, monkeypatch):
    """Hellos must be sent while thousands of interfaces are read: here the loop ends the read."""
    file = tmp_path / "fared.yaml"
    file.write_text(OSPF % 10)
    host, may_end = Host(file), threading.Event()

    def slow(path: Path, text: str | None, compare: Any) -> Any:
        assert may_end.wait(10), "the loop had no turn"
        return load_runnable(path, text, compare)

    monkeypatch.setattr(module, "load_runnable", slow)

    async def scenario() -> Any:
        asyncio.get_running_loop().call_later(0.01, may_end.set)
        return await host.reloader().reload()

    assert asyncio.run(scenario()).applied


def test_changed_links_are_passed_to_the_router_in_slices(tmp_path):
    """With a millisecond of work per link, for 200 links, the loop runs after every ten."""
    file = tmp_path / "fared.yaml"
    file.write_text(OSPF % 10)
    host = Host(file, links=200)
    file.write_text(OSPF % 20)

    async def scenario() -> Any:
        reloader = host.reloader(clock=lambda: len(host.fed) / 1000)
        plan = await reloader.planned()
        return await turns_during(reloader.apply(plan))

    turns, _ = asyncio.run(scenario())
    assert turns >= 200 / (SLICE * 1000)
    assert [told.event.settings.cost for told in host.fed] == [20] * 200
    assert host.order == ["settings", *["links"] * 200, "routes"]


def test_links_with_unchanged_settings_are_not_updated(tmp_path):
    file = tmp_path / "fared.yaml"
    file.write_text(OSPF % 10)
    host = Host(file, links=3)
    file.write_text("ospf: {areas: {0: {interfaces: {'swp*': , swp2: {cost: 5}}}}}\n")
    answer = asyncio.run(host.reloader().reload())
    assert answer.applied
    assert [(told.event.link.name, told.event.settings.cost) for told in host.fed] == [("swp2", 5)]


def test_a_reload_warns_in_its_answer_and_in_the_log(tmp_path):
    file = tmp_path / "fared.yaml"
    file.write_text(
        OSPF % 10 + "isis: {net: 49.0001.0102.5500.0001.00, interfaces: {lo: }, max-paths: 3}\n"
    )
    host = Host(file)
    (warning,) = asyncio.run(host.reloader().reload()).warnings
    assert warning.startswith(f"{file}:2:")
    assert ("configuration", {"warning": warning}) in host.said


def test_a_refused_file_changes_nothing(tmp_path):
    file = tmp_path / "fared.yaml"
    file.write_text(OSPF % 10)
    host, before = Host(file), load_runnable(file).config
    file.write_text("ospf: []\n")
    answer = asyncio.run(host.reloader().reload())
    assert (answer.applied, len(answer.errors)) == (False, 1)
    assert host.config == before
    assert host.order == []
    assert host.runtime.last_reload_ok is False


def test_sighup_reloads_one_file_after_the_other_and_tells_systemd(tmp_path):
    file = tmp_path / "fared.yaml"
    file.write_text(OSPF % 10)
    host = Host(file)
    file.write_text(OSPF % 20)

    async def scenario() -> None:
        reloader = host.reloader()
        reloader.hang_up()
        await reloader.reload()
        await asyncio.wait_for(host.told_ready.wait(), 30)

    asyncio.run(scenario())
    once = ["settings", "links", "routes"]
    rest = [step for step in host.order if step != "ready"]
    assert rest == ["reloading", *once, "settings", "routes"]


def test_systemd_is_not_told_of_a_reload_before_the_start_has_ended(tmp_path):
    """The end of the reload would be taken for that of the start."""
    file = tmp_path / "fared.yaml"
    file.write_text(OSPF % 10)
    host = Host(file)
    host.startup.ready = False

    async def scenario() -> None:
        reloader = host.reloader()
        reloader.hang_up()
        await reloader.reload()

    asyncio.run(scenario())
    assert not {"reloading", "ready"} & {*host.order}
    assert host.runtime.last_reload_ok


def test_nothing_is_applied_once_the_daemon_stops(tmp_path):
    """The thread may be reading when SIGTERM arrives; the router has ended when it is done."""
    file = tmp_path / "fared.yaml"
    file.write_text(OSPF % 10)
    host = Host(file)
    host.ends = True
    file.write_text(OSPF % 20)
    answer = asyncio.run(asyncio.wait_for(_outcome(host.reloader()), 30))
    assert "stopping" in answer
    assert host.order == []


async def _outcome(reloader: Reloader) -> str:
    try:
        return str(await reloader.reload())
    except module.CommandError as error:
        return error.message


def test_a_text_is_compared_with_what_runs_beside_the_loop_too(tmp_path):
    file = tmp_path / "fared.yaml"
    file.write_text(OSPF % 10)
    host = Host(file)
    answer = asyncio.run(host.reloader().diff(ConfigDiffRequest(text=OSPF % 20)))
    (change,) = answer.changes
    assert (change.old, change.new, change.action) == (10, 20, "update-in-place")


async def test_the_garbage_collector_is_paused_while_a_large_file_is_read(tmp_path, monkeypatch):
    """It does not run meanwhile, nor examine the result later, even if the file is invalid."""
    file = tmp_path / "fared.yaml"
    file.write_text(OSPF % 10)
    host, seen = Host(file), []
    plan = module._plan

    def watched(running, path, text):
        made = plan(running, path, text)
        seen.append(gc.isenabled())
        return made

    def load(path, text, compare):
        seen.append(gc.isenabled())
        return load_runnable(path, text, compare)

    monkeypatch.setattr(module, "load_runnable", load)
    monkeypatch.setattr(module, "_plan", watched)
    file.write_text(OSPF % 20)
    assert (await host.reloader().reload()).applied
    assert seen == [False, True]
    file.write_text("nonsense: 1\n")
    assert not (await host.reloader().reload()).applied
    assert gc.isenabled()
