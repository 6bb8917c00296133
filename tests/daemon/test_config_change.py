"""Changes with a way back: applied, confirmed, returned, rolled back; the file tells what is saved.

The host is a daemon reduced to the parts that a change uses; files and timers are real.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from fared.config import Config, Loaded, load_runnable
from fared.daemon.change.config_change import ConfigChanges
from fared.daemon.change.config_documents import ConfigDocuments
from fared.daemon.change.config_file import ConfigFile
from fared.management.api.encode import encode
from fared.management.api.requests import ConfigApplyRequest, ConfigRollbackRequest
from fared.management.documents.errors import CommandError
from tests.daemon.test_reload import Host as ReloadedHost

TEXT = """
state-directory: {state}
ospf: {{areas: {{0: {{interfaces: {{'swp*': {{cost: {cost}}}}}}}}}}}
"""
SECRET = "authentication: {algorithm: md5, key-id: 1, key: geheim}"
AT_MOST = 10.0


class Host(ReloadedHost):
    """Its links and routes are of the reload tests."""

    def __init__(self, directory: Path, cost: int = 10) -> None:
        file = directory / "fared.yaml"
        if not file.exists():
            file.write_text(TEXT.format(state=directory / "state", cost=cost))
        super().__init__(file)
        self.runtime.unconfirmed_until = None
        self.heard: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.changes = ConfigChanges(
            self,
            load_runnable(file),
            self.reloader,
            runtime=self.runtime,
            stopping=self.stopping,
            log=self.log,
        )

    @property
    def cost(self) -> int | None:
        """What runs."""
        assert self.config.ospf is not None
        (area,) = self.config.ospf.areas.values()
        return area.interfaces["swp*"].cost

    @property
    def saved(self) -> str:
        return Path(self.path).read_text()

    def text(self, cost: int) -> str:
        return TEXT.format(state=Path(self.path).parent / "state", cost=cost)

    async def apply(self, cost: int, **args: Any) -> Any:
        return await self.changes.apply(
            ConfigApplyRequest(text=self.text(cost), file="new.yaml", **args)
        )

    async def rows(self) -> list[tuple[str, str]]:
        found = await self.changes.history()
        return [(entry.how, entry.state) for entry in found.entries]

    def _say(self, event: str, **fields: Any) -> None:
        super()._say(event, **fields)
        self.heard[event].set()

    async def until_said(self, event: str) -> None:
        async with asyncio.timeout(AT_MOST):
            await self.heard[event].wait()

    def write(self, text: str) -> None:
        Path(self.path).write_text(text)

    def remove(self) -> None:
        Path(self.path).unlink()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


async def test_a_valid_configuration_is_saved_and_applied(host: Host):
    answer = await host.apply(20, comment="less traffic")
    assert answer.applied
    assert answer.confirm_within is None
    (change,) = answer.changes
    assert (change.old, change.new) == (10, 20)
    assert (host.cost, host.saved) == (20, host.text(20))
    found = (await host.changes.history()).entries
    assert [entry.how for entry in found] == ["apply", "start"]
    assert (found[0].comment, found[0].changes) == ("less traffic", 1)


async def test_an_invalid_configuration_changes_nothing(host: Host):
    before = host.saved
    answer = await host.changes.apply(ConfigApplyRequest(text="opsf: {}\n", file="new.yaml"))
    assert not answer.applied
    assert "new.yaml:1:1: opsf: " in answer.errors[0]
    assert (host.cost, host.saved, host.fed) == (10, before, [])
    assert await host.rows() == [("start", "final")]


async def test_an_unconfirmed_configuration_runs_but_is_not_saved(host: Host):
    before = host.saved
    assert (await host.apply(20, confirm=60)).confirm_within == 60
    assert (host.cost, host.saved) == (20, before)
    assert host.runtime.unconfirmed_until is not None
    assert await host.rows() == [("apply", "unconfirmed"), ("start", "final")]
    assert (await host.changes.confirm()).confirmed
    assert (host.cost, host.saved) == (20, host.text(20))
    assert host.runtime.unconfirmed_until is None
    assert await host.rows() == [("apply", "final"), ("start", "final")]


async def test_without_confirmation_the_former_configuration_returns(host: Host):
    before = host.saved
    await host.apply(20, confirm=1)
    await host.until_said("config-returned")
    assert host.cost == 10
    assert host.saved == before
    assert await host.rows() == [("return", "final"), ("apply", "expired"), ("start", "final")]
    assert [told.event.settings.cost for told in host.fed] == [20, 10]
    with pytest.raises(CommandError, match="no change waits"):
        await host.changes.confirm()


async def test_the_former_configuration_returns_at_the_next_start(tmp_path: Path):
    """The daemon was killed between apply and confirm."""
    killed = Host(tmp_path)
    await killed.apply(20, confirm=60)
    following = Host(tmp_path)
    await following.changes.started()
    assert following.cost == 10
    assert await following.rows() == [
        ("return", "final"),
        ("apply", "expired"),
        ("start", "final"),
    ]
    assert ("config-returned", {"number": 2, "reason": "restart"}) in following.said


async def test_an_edit_before_the_next_start_is_no_return(tmp_path: Path):
    killed = Host(tmp_path)
    await killed.apply(20, confirm=60)
    killed.write(killed.text(40))
    following = Host(tmp_path)
    await following.changes.started()
    assert await following.rows() == [("start", "final"), ("apply", "expired"), ("start", "final")]
    assert "config-returned" not in {event for event, _ in following.said}


async def test_a_confirmation_that_a_crash_cut_short_counts(tmp_path: Path):
    """The daemon was killed when the file was saved, and the history was not."""
    killed = Host(tmp_path)
    await killed.apply(20, confirm=60)
    killed.write(killed.text(20))
    following = Host(tmp_path)
    await following.changes.started()
    assert following.cost == 20
    assert await following.rows() == [("apply", "final"), ("start", "final")]
    assert "config-returned" not in {event for event, _ in following.said}


async def test_a_change_that_waits_can_be_undone_at_once(host: Host):
    await host.apply(20, confirm=60)
    assert (await host.changes.rollback(ConfigRollbackRequest())).applied
    assert host.cost == 10
    assert host.runtime.unconfirmed_until is None
    assert (await host.rows())[0] == ("return", "final")


async def test_a_second_change_waits_for_the_confirmation_of_the_first(host: Host):
    await host.apply(20, confirm=60)
    for second in (host.apply(30), host.changes.rollback(ConfigRollbackRequest(back=1))):
        with pytest.raises(CommandError, match="waits for its confirmation"):
            await second
    assert host.cost == 20


async def test_a_former_configuration_is_applied_again(host: Host):
    for cost in (20, 30):
        await host.apply(cost)
    assert (await host.changes.rollback(ConfigRollbackRequest())).applied
    assert (host.cost, host.saved) == (20, host.text(20))
    assert (await host.changes.rollback(ConfigRollbackRequest(back=3))).applied
    assert (host.cost, host.saved) == (10, host.text(10))
    assert [how for how, _ in await host.rows()] == ["rollback"] * 2 + ["apply"] * 2 + ["start"]
    with pytest.raises(CommandError, match="goes back to 4"):
        await host.changes.rollback(ConfigRollbackRequest(back=5))


async def test_a_rollback_may_need_a_confirmation_too(host: Host):
    await host.apply(20)
    await host.changes.rollback(ConfigRollbackRequest(confirm=1))
    assert (host.cost, host.saved) == (10, host.text(20))
    await host.until_said("config-returned")
    assert host.cost == 20


async def test_a_reload_joins_the_history_if_the_file_differs(host: Host):
    await host.changes.reloader.reload()
    assert await host.rows() == [("start", "final")]
    host.write(host.text(40))
    await host.changes.reloader.reload()
    assert await host.rows() == [("reload", "final"), ("start", "final")]


async def test_a_reload_ends_the_wait_for_a_confirmation(host: Host):
    """The file holds the former configuration: it is read, and nothing returns later."""
    await host.apply(20, confirm=60)
    await host.changes.reloader.reload()
    assert host.cost == 10
    assert host.runtime.unconfirmed_until is None
    assert await host.rows() == [("reload", "final"), ("apply", "expired"), ("start", "final")]


async def test_a_file_edited_before_the_start_joins_the_history(tmp_path: Path):
    first = Host(tmp_path)
    await first.changes.started()
    first.write(first.text(20))
    for _ in range(2):
        following = Host(tmp_path)
        await following.changes.started()
    assert await following.rows() == [("start", "final"), ("start", "final")]


@pytest.mark.parametrize("args", [{}, {"confirm": 60}])
async def test_a_file_that_cannot_be_written_is_said_before_anything_changes(
    host: Host, monkeypatch, args
):
    """Tests run as root, who may write anywhere: the check is asked instead."""

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    for name in ("check_replaceable", "replace_text"):
        monkeypatch.setattr(f"fared.daemon.change.config_file.{name}", refuse)
    answer = await host.apply(20, **args)
    assert not answer.applied
    assert "cannot write" in answer.errors[0]
    assert (host.cost, host.fed) == (10, [])


@pytest.mark.parametrize("change", ["apply", "apply, to be confirmed", "rollback", "confirm"])
async def test_a_change_writes_over_no_edit_that_was_not_read(host: Host, change):
    await host.apply(20)
    if change == "confirm":
        await host.apply(30, confirm=60)
    host.write(host.text(40))
    cost, rows = host.cost, await host.rows()
    answer = await {
        "apply": lambda: host.apply(30),
        "apply, to be confirmed": lambda: host.apply(30, confirm=60),
        "rollback": lambda: host.changes.rollback(ConfigRollbackRequest()),
        "confirm": host.changes.confirm,
    }[change]()
    assert not answer.applied
    assert "it has been edited since the daemon read it" in answer.errors[0]
    assert (host.cost, host.saved) == (cost, host.text(40))
    assert await host.rows() == rows
    await host.changes.reloader.reload()
    assert (await host.apply(50)).applied


async def test_a_file_that_was_edited_to_what_is_applied_or_removed_is_written(host: Host):
    host.write(host.text(20))
    assert (await host.apply(20)).applied
    host.remove()
    assert (await host.apply(30)).applied
    assert (host.cost, host.saved) == (30, host.text(30))


@pytest.mark.parametrize("within", [1, 60])
async def test_a_return_warns_of_an_edit_that_does_not_run(host: Host, within):
    """When the time is over, in the log; when it is asked for, in the answer, too."""
    await host.apply(20, confirm=within)
    host.write(host.text(40))
    if within == 60:
        (warning,) = (await host.changes.rollback(ConfigRollbackRequest())).warnings
        assert "has been edited" in warning
    await host.until_said("configuration")
    assert (host.cost, host.saved) == (10, host.text(40))


def test_a_file_that_was_refused_at_the_start_is_replaced(tmp_path: Path):
    """What ran last runs in its place, and the log has its errors; later edits are kept."""
    path = tmp_path / "fared.yaml"
    path.write_text("nonsense\n")
    file = ConfigFile(path, Loaded(Config(), text="what ran last", refused="nonsense"))
    file.save("new")
    path.write_text("edited")
    with pytest.raises(OSError, match="has been edited"):
        file.save("newer")
    assert path.read_text() == "edited"


async def test_keys_are_kept_and_never_shown(host: Host):
    text = host.text(20).replace("{cost: 20}", "{cost: 20, " + SECRET + "}")
    answer = await host.changes.apply(ConfigApplyRequest(text=text, file="new.yaml"))
    assert answer.applied, answer
    assert "geheim" in host.saved
    for shown in (answer, await host.changes.history(), await saved_by(host)):
        assert "geheim" not in str(shown)
    await host.apply(30)
    await host.changes.rollback(ConfigRollbackRequest())
    assert "geheim" in host.saved


async def saved_by(host: Host) -> Any:
    """The document of the file."""
    return json.loads(encode(await ConfigDocuments(host, host.runtime).saved()))


async def test_the_saved_configuration_is_that_of_the_file(host: Host):
    await host.apply(20, confirm=60)
    saved = await saved_by(host)
    assert saved["saved"]
    assert saved["config"]["ospf"]["areas"]["0.0.0.0"]["interfaces"]["swp*"]["cost"] == 10
    host.write("nonsense\n")
    with pytest.raises(CommandError, match=r"fared\.yaml"):
        await saved_by(host)


async def test_the_start_joins_the_history_once_there_are_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    host = Host(tmp_path)

    def short(*_: Any) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "iterdir", short)
        with pytest.raises(OSError, match="open files"):
            await host.changes.started()
        with pytest.raises(CommandError, match="cannot read the history: Too many open files"):
            await host.changes.history()
    await host.changes.started()
    assert await host.rows() == [("start", "final")]
