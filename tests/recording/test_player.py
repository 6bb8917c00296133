"""The player runs a recorded router, and names the first call that it answers otherwise."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from fared.core.ids import Prefix, ipv4_prefix
from fared.extensions.sim.fabric import clos3
from fared.management.recording import calls, files
from fared.management.recording import recording as running
from fared.management.recording.player import play
from fared.management.recording.signature import KEY_NAME, is_ours, made_key, signed, state_of
from fared.management.recording.taped import answered
from fared.management.recording.values import UnreadableValueError, ValueReader, ValueWriter
from fared.paths.fib.model import DeleteRoute, PutRoute
from fared.router import events
from fared.router.router import Router
from tests.recording.taped_network import TapedNetwork


def rewrite(file: Path, change: Callable[[calls.Line], calls.Line | None]) -> None:
    """Change lines of a segment; None: leave one out."""
    lines = [change(line) for line in calls.decoded(file.read_bytes())]
    file.write_bytes(calls.encoded(line for line in lines if line is not None))


def first(directory: Path) -> Path:
    return files.segments(directory)[0].file


def last(directory: Path) -> Path:
    return files.segments(directory)[-1].file


def test_all_calls_are_made_again_and_the_end_is_the_same(recording):
    played = play(recording)
    assert played.difference is None
    assert played.confirmed
    assert played.new_router
    assert played.raised == []
    assert played.segment == 2
    assert played.call == sum(
        isinstance(line, calls.CALLS) for one in files.segments(recording) for line in one.lines()
    )
    assert played.events["link-changed"] == 5
    assert played.events["neighbor-changed"] > 2


def test_a_replay_can_begin_with_a_state(recording):
    whole = play(recording)
    first(recording).unlink()
    played = play(recording)
    assert not played.new_router
    assert played.confirmed
    assert played.call < whole.call
    assert dict(played.router.table.routes).keys() == dict(whole.router.table.routes).keys()


def test_a_missing_segment_is_bridged_by_the_next_state(recording, tmp_path):
    second = files.segments(recording)[1]
    assert second.state is not None
    for file in (second.file, second.state):
        file.rename(file.with_name(f"000003{file.suffix}"))
    played = play(recording)
    assert played.confirmed
    assert not played.new_router
    assert played.segment == 3


def test_another_input_is_a_difference_at_its_call(recording):
    changed = []

    def lose_one(line: calls.Line) -> calls.Line | None:
        if isinstance(line, calls.InputHandled) and not changed:
            changed.append(line)
            return None
        return line

    rewrite(last(recording), lose_one)
    difference = play(recording).difference
    assert difference is not None
    assert difference.segment == 2
    assert difference.what == "0 outputs, were 3"


def test_other_outputs_are_a_difference_with_what_there_is_now(recording):
    given = []

    def change(line: calls.Line) -> calls.Line:
        if isinstance(line, calls.OutputsGiven):
            given.append(line)
            if len(given) == 3:
                return replace(line, digest=bytes(12))
        return line

    rewrite(first(recording), change)
    difference = play(recording).difference
    assert difference is not None
    assert difference.what == "other outputs"
    assert len(difference.outputs) == given[2].count


@pytest.mark.parametrize("part", ["databases", "routes"])
def test_another_end_is_a_difference(recording, part):
    def change(line: calls.Line) -> calls.Line:
        return replace(line, **{part: b"x"}) if isinstance(line, calls.StateSeen) else line

    rewrite(last(recording), change)
    played = play(recording)
    assert not played.confirmed
    assert played.difference is not None
    assert played.difference.what == f"other {part} at the end"


def test_an_exception_is_part_of_the_recording(recording, monkeypatch):
    """One that the recorded router did not raise is a difference."""

    def fail(self: Router, now: float) -> None:
        raise KeyError("gone")

    monkeypatch.setattr(Router, "tick", fail)
    played = play(recording)
    assert played.raised[0] == "KeyError: 'gone'"
    assert played.difference is not None
    assert played.difference.what == "raises KeyError: 'gone', was: nothing"


def test_a_recording_of_a_killed_process_ends_anywhere(recording):
    content = last(recording).read_bytes()
    calls_before = -1
    for size in range(len(content) * 3 // 4, len(content), 97):
        last(recording).write_bytes(content[:size])
        played = play(recording)
        assert played.difference is None
        assert not played.confirmed
        assert played.call >= calls_before
        calls_before = played.call


def test_what_a_router_did_not_survive_is_made_again(recording):
    """A call is written before it is made."""
    lines = list(calls.decoded(last(recording).read_bytes()))
    place = max(n for n, line in enumerate(lines) if isinstance(line, calls.InputHandled))
    last(recording).write_bytes(calls.encoded(lines[: place + 1]))
    played = play(recording)
    assert played.difference is None
    assert played.call == sum(isinstance(line, calls.CALLS) for line in lines[: place + 1]) + sum(
        isinstance(line, calls.CALLS) for line in files.segments(recording)[0].lines()
    )


@pytest.mark.parametrize(
    ("until", "name"),
    [
        ("neighbor-changed", "neighbor-changed"),
        ("neighbor-changed:3", "neighbor-changed"),
        ("link-changed:5", "link-changed"),
        ("computed", "computed"),
    ],
)
def test_a_replay_stops_at_an_event(recording, until, name):
    played = play(recording, until=until)
    assert played.reached
    assert played.events[name] >= int(until.partition(":")[2] or 1)
    before = play(recording, until=str(played.call - 1))
    assert before.call == played.call - 1
    assert before.events[name] < int(until.partition(":")[2] or 1)


def test_an_event_that_does_not_come_is_not_reached(recording):
    played = play(recording, until="neighbor-changed:1000")
    assert not played.reached
    assert played.confirmed


@pytest.mark.parametrize("until", [":3", "x:y", "computed:0"])
def test_a_wrong_event_is_refused(recording, until):
    with pytest.raises(ValueError, match=r"is no event|invalid literal"):
        play(recording, until=until)


def test_the_state_of_another_version_is_refused_and_named(recording, monkeypatch):
    first(recording).unlink()
    monkeypatch.setattr("fared.management.recording.player.__version__", "9.9.9")
    with pytest.raises(files.RecordingError, match=r"fared 0\.2\.0 on Python .* this is 9\.9\.9"):
        play(recording)


def test_the_calls_of_another_version_are_replayed_but_not_compared(recording, monkeypatch):
    monkeypatch.setattr("fared.management.recording.player.PYTHON", "4.2")
    rewrite(
        first(recording),
        lambda line: replace(line, count=77) if isinstance(line, calls.OutputsGiven) else line,
    )
    last(recording).unlink()
    played = play(recording)
    assert not played.compared
    assert played.difference is None
    assert len(played.router.table.routes) > 4


def test_a_state_that_this_machine_has_not_signed_is_loaded_only_if_it_is_trusted(
    recording, tmp_path, keys
):
    """Whoever unpacks an archive owns what is in it: owner, mode and place prove nothing."""
    first(recording).unlink()
    assert play(recording).confirmed
    with pytest.raises(files.RecordingError, match="was not signed with"):
        play(recording, keys=tmp_path / "another-machine")
    assert play(recording, trust=True, keys=tmp_path / "another-machine").confirmed
    (state,) = recording.glob("*.state")
    state.write_bytes(signed(state_of(state.read_bytes()), bytes(32)))
    with pytest.raises(files.RecordingError, match="was not signed with"):
        play(recording)
    assert stat.S_IMODE((keys / KEY_NAME).stat().st_mode) == 0o600


def test_without_a_place_for_a_key_states_are_not_signed(tmp_path):
    (tmp_path / "file").touch()
    assert made_key(tmp_path / "file" / "state") is None
    assert not is_ours(signed(b"state", None), tmp_path)


def test_a_value_that_is_nested_too_deep_is_refused():
    (tuples, deep) = [], []
    written = ValueWriter(tuples.append).write(((),))
    for _ in range(3000):
        deep = [written[0], deep or written]
    with pytest.raises(UnreadableValueError, match="nested too deep"):
        ValueReader().read(deep)


def test_a_new_router_runs_nothing_of_the_recording_so_its_owner_may_be_anybody(recording):
    last(recording).unlink()
    recording.chmod(0o777)
    assert play(recording).new_router


def test_what_is_no_recording_is_refused(recording, tmp_path):
    with pytest.raises(files.RecordingError, match="no recording"):
        play(tmp_path)
    with pytest.raises(files.RecordingError, match="No such file"):
        play(tmp_path / "nowhere")
    rewrite(
        last(recording),
        lambda line: replace(line, format="x/1") if isinstance(line, calls.SegmentBegun) else line,
    )
    with pytest.raises(files.RecordingError, match="is no recording"):
        play(recording)


def test_a_damaged_state_is_refused(recording):
    first(recording).unlink()
    state = files.segments(recording)[0].state
    assert state is not None
    state.write_bytes(state.read_bytes()[:-100])
    with pytest.raises(files.RecordingError, match="was not signed"):
        play(recording)
    with pytest.raises(files.RecordingError, match="cannot be loaded"):
        play(recording, trust=True)


def test_an_answer_that_this_router_did_not_ask_for_is_a_difference(recording):
    rewrite(
        first(recording),
        lambda line: replace(line, place=7) if isinstance(line, calls.FibAnswered) else line,
    )
    difference = play(recording).difference
    assert difference is not None
    assert difference.what == "the kernel answers what was not asked"


def test_refusals_of_the_kernel_are_recorded(tmp_path):
    """The router asks again for what the kernel has refused, in the replay too."""
    network = TapedNetwork(tmp_path, 4)
    fabric = clos3(2, 2, network=network)
    prefix: Prefix = fabric.leaf_prefixes["L2"]
    network.nodes["L1"].kernel.refuse[prefix] = 12
    network.start_all()
    network.run_until_quiet(60)
    network.end()
    played = play(tmp_path / "L1")
    assert played.confirmed
    refused = [
        line.errors
        for one in files.segments(tmp_path / "L1")
        for line in one.lines()
        if isinstance(line, calls.FibAnswered) and line.errors
    ]
    assert refused
    assert refused[0][0].error == 12
    assert refused[0][0].subject == f"put route {prefix}"


@pytest.mark.parametrize(
    ("subject", "errors"),
    [
        ("put route 10.0.1.0/24", [0, 0, 12]),
        ("put route 10.0.2.0/24", [0, 0, 0]),
        ("", [0, 12, 0]),  # by a version that recorded places only
    ],
)
def test_a_refusal_is_of_what_was_to_be_written_wherever_another_version_writes_it(subject, errors):
    asked = PutRoute(ipv4_prefix(0x0A000000, 24), 7), PutRoute(ipv4_prefix(0x0A000100, 24), 7)
    request = events.ApplyFib((DeleteRoute(ipv4_prefix(0x0A000200, 24)), *asked), "changed routes")
    line = calls.FibAnswered(1.0, 0, (calls.RefusedOperation(1, 12, "no memory", subject),), 0.0)
    assert [result.error for result in answered(line, request).results] == errors


def test_what_cannot_be_recorded_ends_the_tape_and_not_the_router(tmp_path):
    network = TapedNetwork(tmp_path, 4)
    clos3(2, 2, network=network)
    network.start_all()
    network.run_until_quiet(60)
    tape = network.recordings["L1"].tape
    network.nodes["L1"].running.handle(events.To("ospf", object()), network.now)  # type: ignore[arg-type]
    assert "object cannot be recorded" in tape.failure
    written = tape.calls
    network.set_link("L1", "S1", up=False)
    network.run_for(3)
    assert tape.calls == written
    assert len(network.nodes["L1"].running.table.routes) > 4


def test_large_routers_are_not_digested(recorded, monkeypatch, tmp_path):
    assert running.MOST_DIGESTED == 5000
    monkeypatch.setattr(running, "MOST_DIGESTED", 2)
    network = TapedNetwork(tmp_path, 4)
    clos3(2, 2, network=network)
    network.start_all()
    network.run_until_quiet(60)
    network.end()
    played = play(tmp_path / "L1")
    assert played.difference is None
    assert not played.confirmed
