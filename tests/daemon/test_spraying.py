"""How the daemon starts, executes and ends spraying, without a kernel."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import pytest

from fared.daemon.loop.defence import Defence
from fared.daemon.services import spraying
from fared.daemon.services.spray_writer import SprayWriter
from fared.daemon.services.table_work import TableWork
from fared.kernel import spray as kernel_spray
from fared.kernel.nft import NftError
from fared.paths.fib.settings import Granularity, SprayMatch, SpraySettings
from fared.paths.fib.spray import DeleteMatch, PutMatch, SprayState
from fared.router import events
from tests.waiting import loop_until

PACKET = SpraySettings(Granularity.PACKET)
WANTED = (PutMatch(SprayMatch()),)
HELD = SprayState(SprayMatch())


class Kernel:
    """A kernel whose nft fails while ``error`` is set."""

    def __init__(self) -> None:
        self.state = SprayState()
        self.error: OSError | None = None
        self.refused: list[str] = []
        self.counted: dict[int, tuple[int, int]] = {}
        self.done: list[object] = []
        self.readings = 0
        self.nft = self
        self.changed: Callable[[], None] = lambda: None

    def watch(self, changed: Callable[[], None]) -> SimpleNamespace:
        self.changed = changed
        return SimpleNamespace(start=lambda: None, close=lambda: None, settle=lambda: None)

    def begin(self, operations: tuple[object, ...]) -> list[str]:
        self.done.append(("begin", operations))
        return list(self.refused)

    def apply(self, operations: tuple[object, ...]) -> None:
        if self.error is not None:
            raise self.error
        self.done.append(("nft", operations))

    def end(self, operations: tuple[object, ...]) -> list[str]:
        self.done.append(("end", operations))
        return []

    def lift(self) -> None:
        self.done.append("lift")

    def read(self) -> tuple[SprayState, dict[int, tuple[int, int]]]:
        self.readings += 1
        if self.error is not None:
            raise self.error
        return self.state, {}

    def join(self, state: SprayState) -> SprayState:
        return state


class World:
    """A writer and its surroundings."""

    def __init__(self) -> None:
        self.kernel = Kernel()
        self.fed: list[events.Input] = []
        self.said: list[tuple[str, dict[str, object]]] = []
        self.log = SimpleNamespace(
            warning=lambda event, **fields: self.said.append((event, fields)),
            error=lambda event, **fields: self.said.append((event, fields)),
        )
        self.writer = SprayWriter(self.kernel, self.fed.append, self.log, Defence(self.log))

    @property
    def work(self) -> TableWork:
        """The work on the table: whether it is busy, and when it is tried again."""
        return self.writer._work

    async def answers(self, count: int = 1) -> list[events.Input]:
        await loop_until(lambda: len(self.fed) >= count, 30, "an answer")
        return self.fed


def inside_loop(test: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        await test(World())

    asyncio.run(run())


def test_rules_come_before_packets_get_marks_and_go_after():
    async def test(world: World) -> None:
        world.writer.apply(events.ApplySpray(WANTED))
        assert await world.answers() == [events.SprayApplied()]
        assert world.kernel.done == [("begin", WANTED), ("nft", WANTED), ("end", WANTED)]

    inside_loop(test)


def test_after_a_failure_of_nft_packets_follow_their_flow():
    async def test(world: World) -> None:
        world.kernel.error = NftError(errno.EINVAL, "refused")
        world.writer.apply(events.ApplySpray(WANTED))
        assert await world.answers() == [events.SprayApplied("refused", None)]
        assert world.kernel.done == [("begin", WANTED), "lift"]

    inside_loop(test)


def test_a_refused_rule_is_an_error_and_the_state_comes_with_it():
    async def test(world: World) -> None:
        world.kernel.refused, world.kernel.state = ["IPv4 rule: no"], HELD
        world.writer.apply(events.ApplySpray(WANTED))
        assert await world.answers() == [events.SprayApplied("IPv4 rule: no", HELD)]

    inside_loop(test)


def test_an_unexpected_exception_is_answered_too():
    async def test(world: World) -> None:
        world.kernel.end = lambda _: 1 / 0
        world.writer.apply(events.ApplySpray(WANTED))
        assert await world.answers() == [events.SprayApplied("interrupted", None)]
        assert [event for event, _ in world.said] == ["internal-error"]

    inside_loop(test)


def test_what_a_former_process_left_is_passed_on():
    async def test(world: World) -> None:
        world.kernel.state = HELD
        world.writer.adopt()
        assert await world.answers() == [events.SprayAdopted(HELD)]

    inside_loop(test)


def test_a_kernel_that_cannot_be_read_is_reported():
    async def test(world: World) -> None:
        world.kernel.error = NftError(errno.ETIMEDOUT, "no answer")
        world.writer.audit()
        await loop_until(lambda: not world.work.busy, 30, "idle")
        world.writer.audit()
        await loop_until(lambda: not world.work.busy, 30, "idle")
        assert world.kernel.readings == 2
        assert world.said == [("spray-not-read", {"error": "no answer"})]
        assert (world.fed, world.writer.unread) == ([], "no answer")
        assert world.work._timer is not None, "it is tried again"
        world.kernel.error = None
        world.writer.audit()
        assert await world.answers() == [events.SprayAudited(SprayState())]
        assert world.writer.unread == ""

    inside_loop(test)


def test_changes_of_others_are_read_each_time_after_a_pause_of_four_times_as_long():
    """However long they go on: a fifth of the time is for them."""

    async def test(world: World) -> None:
        loop = asyncio.get_running_loop()
        for number in range(1, 9):
            before = loop.time()
            world.kernel.changed()
            world.kernel.changed()
            after, rests = loop.time(), world.work._rests_until
            due = world.work._timer.when()
            assert max(before + 0.01, rests) <= due <= max(after + 0.01, rests)
            await world.answers(number)
            await loop_until(lambda: not world.work.busy, 30, "idle")
        assert world.kernel.readings == 8

    inside_loop(test)


def test_a_reading_is_followed_by_a_pause_of_four_times_as_long():
    async def test(world: World) -> None:
        loop, work = asyncio.get_running_loop(), world.work
        begun = loop.time()
        world.writer.audit()
        await world.answers()
        await loop_until(lambda: not work.busy, 30, "idle")
        assert begun < work._rests_until <= loop.time() + 4 * (loop.time() - begun)

    inside_loop(test)


def test_a_change_of_others_during_a_reading_is_read_after_it():
    async def test(world: World) -> None:
        world.writer.audit()
        world.kernel.changed()
        await world.answers(2)
        assert world.kernel.readings == 2

    inside_loop(test)


def test_a_change_of_others_during_our_own_is_read_after_it():
    async def test(world: World) -> None:
        world.kernel.end = lambda _: world.kernel.changed() or []
        world.writer.apply(events.ApplySpray(WANTED))
        assert await world.answers(2) == [
            events.SprayApplied(),
            events.SprayAudited(SprayState()),
        ]
        await loop_until(lambda: not world.work.busy, 30, "idle")
        assert world.work._timer is None

    inside_loop(test)


def test_until_a_reading_succeeds_the_table_counts_as_changed():
    async def test(world: World) -> None:
        world.kernel.changed()
        world.kernel.error = NftError(errno.ETIMEDOUT, "no answer")
        world.writer.audit()
        await loop_until(lambda: not world.work.busy, 30, "idle")
        assert world.work.disturbed
        world.kernel.error = None
        world.writer.audit()
        await world.answers()
        assert not world.work.disturbed

    inside_loop(test)


def test_on_exit_everything_is_removed_and_nothing_is_written_any_more():
    async def test(world: World) -> None:
        world.kernel.state = HELD
        await world.writer.stop(remove=True)
        world.writer.apply(events.ApplySpray(WANTED))
        assert world.kernel.done[-2] == ("nft", [DeleteMatch()])
        assert len(world.kernel.done) == 3

    inside_loop(test)


def test_on_exit_everything_is_kept_if_that_is_wanted():
    async def test(world: World) -> None:
        world.kernel.state = HELD
        await world.writer.stop(remove=False)
        assert world.kernel.done == []

    inside_loop(test)


def test_a_removal_that_fails_is_reported():
    async def test(world: World) -> None:
        world.kernel.error = NftError(errno.EINVAL, "refused")
        await world.writer.stop(remove=True)
        assert world.said == [("spray-not-removed", {"error": "refused"})]

    inside_loop(test)


# --- start


def service(world: World, marks: tuple[int, ...] = ()) -> spraying.SprayService:
    fib = SimpleNamespace(marks=set(marks))
    runner = SimpleNamespace(feed=world.fed.append, serve=lambda *_: None)
    return spraying.SprayService(fib, runner, world.log, Defence(world.log))


def test_without_nftables_packets_follow_their_flow_and_a_record_says_so(monkeypatch):
    monkeypatch.setattr(kernel_spray, "open_spray", lambda _: None)

    async def test(world: World) -> None:
        made = service(world)
        made.configure(PACKET)
        assert made.problem == "nft is missing: install nftables"
        assert made.counted == {}
        assert [event for event, _ in world.said] == ["packets-not-sprayed"]
        assert world.said[0][1]["effect"] == "packets follow their flow"
        made.audit()
        await made.stop(remove=True)

    inside_loop(test)


@pytest.mark.parametrize(
    ("settings", "marks", "starts"),
    [(SpraySettings(), (), False), (SpraySettings(), (7,), True), (PACKET, (), True)],
    ids=["flow", "flow, remains", "packet"],
)
def test_the_kernel_is_opened_only_if_something_is_or_was_sprayed(
    monkeypatch, settings: SpraySettings, marks: tuple[int, ...], *, starts: bool
):
    async def test(world: World) -> None:
        monkeypatch.setattr(kernel_spray, "open_spray", lambda _: world.kernel)
        made = service(world, marks)
        made.configure(settings)
        assert (made.writer is not None) is starts
        made.configure(settings)
        if starts:
            assert await world.answers() == [events.SprayAdopted(SprayState())]

    inside_loop(test)
