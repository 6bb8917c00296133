"""Labs in containers, on a machine where podman runs one and the images are of this source tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.containers.clab import Clab
from tests.containers.engine import IMAGES, Podman, unprepared


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """podman with storage of its own. It skips what this machine cannot run, and says why."""
    reason = unprepared()
    if reason is not None:
        pytest.skip(reason)
    engine = Podman(tmp_path_factory.mktemp("podman"), IMAGES)
    yield engine
    engine.remove_all()


@pytest.fixture(scope="module")
def deploy(podman: Podman) -> Iterator[Callable[[Path], Clab]]:
    """Deploy a topology file as containerlab does, until the end of the module."""
    labs: list[Clab] = []

    def deployed(file: Path) -> Clab:
        labs.append(Clab(file, podman))
        labs[-1].deploy()
        return labs[-1]

    yield deployed
    for lab in labs:
        lab.destroy()
