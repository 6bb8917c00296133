"""Programs of nodes are started in turn, so that a fabric does not starve itself."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.kinds.base import Command
from fared.extensions.lab.namespaces import CurrentNetns
from fared.extensions.lab.processes import NodeProcess, end, start_in_turn

PATIENCE = 30.0
MOST = 3 * len(os.sched_getaffinity(0))
START = """
mkdir ../starting/$0
ls ../starting | wc -l >> ../counts
sleep 0.02
rmdir ../starting/$0
touch ready
exec sleep 60
"""


class Owner(NamedTuple):
    """A node without a namespace of its own."""

    name: str
    directory: Path
    processes: list[NodeProcess]
    netns: CurrentNetns


@pytest.fixture
def owners(tmp_path):
    made = []
    for number in range(4 * MOST):
        directory = tmp_path / f"n{number}"
        directory.mkdir()
        made.append(Owner(directory.name, directory, [], CurrentNetns(directory.name)))
    (tmp_path / "starting").mkdir()
    yield made
    end([process for owner in made for process in owner.processes])


def command(owner: Owner, script: str, ready: str | None = "ready") -> Command:
    script = f"cd {owner.directory}\n{script}"
    mark = None if ready is None else owner.directory / ready
    return Command("sh", ("sh", "-c", script, owner.name), mark, lasting=ready is not None)


def test_only_a_few_programs_for_each_core_start_at_a_time(owners, tmp_path):
    step = [(owner, command(owner, START)) for owner in owners]
    start_in_turn(step, time.monotonic() + PATIENCE)
    assert all(process.alive() for owner in owners for process in owner.processes)
    counts = [int(line) for line in (tmp_path / "counts").read_text().split()]
    assert len(counts) == len(owners)
    assert max(counts) <= MOST


def test_a_program_that_ends_while_others_start_is_reported_at_once(owners):
    step = [(owner, command(owner, "echo lost; exit 3")) for owner in owners]
    with pytest.raises(LabError, match=r"n0: sh ended with code 3:\nlost"):
        start_in_turn(step, time.monotonic() + PATIENCE)
    assert not any(owner.processes for owner in owners[MOST:])


def test_a_program_that_is_never_ready_is_reported_at_the_deadline(owners):
    step = [(owners[0], command(owners[0], "exec sleep 60"))]
    with pytest.raises(LabError, match="n0: sh is not ready in time"):
        start_in_turn(step, time.monotonic() + 0.2)


def test_a_program_that_prepares_the_next_one_has_ended_and_is_forgotten(owners):
    start_in_turn([(owners[0], command(owners[0], "touch done", None))], time.monotonic() + 9)
    assert (owners[0].directory / "done").exists()
    assert owners[0].processes == []
