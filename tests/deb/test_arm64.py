"""The packages of arm64, made here and run on an emulated machine (``make test-deb``).

qemu translates the instructions of one program at a time, and its system calls: the daemon, whose
packet sockets it does not know, is only checked; what computes gives the same results as here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deb import build, contents
from deb.prepare import FOREIGN, NEW, OUT, foreign
from deb.releases import SUFFIX

ROOT = Path(__file__).parents[2]
CLI = "/usr/bin/fared-cli"
QEMU = shutil.which("qemu-aarch64-static")
PACKAGES = [
    OUT / FOREIGN / f"{name}_{NEW}{SUFFIX.get(build.PYTHON, '')}_{FOREIGN}.deb"
    for name in build.PACKAGES
]

pytestmark = [
    pytest.mark.soak,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root"),
    pytest.mark.skipif(QEMU is None, reason="qemu-aarch64-static is missing"),
    pytest.mark.skipif(
        not all(file.exists() for file in (foreign(), *PACKAGES)),
        reason="not prepared: make test-deb",
    ),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root of arm64 with both packages and the emulator."""
    made = tmp_path_factory.mktemp("arm64")
    subprocess.run(("tar", "-C", str(made), "-xf", str(foreign())), check=True)
    for file in PACKAGES:
        subprocess.run(("dpkg-deb", "--extract", str(file), str(made)), check=True)
    shutil.copy(str(QEMU), made / "qemu")
    return made


def run(root: Path, *words: str) -> str:
    python = ("/qemu", "/usr/bin/python3", "-s")
    command = ("chroot", str(root), *python, *words)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_program_runs_on_the_other_machine(root: Path):
    assert run(root, "-c", "import platform; print(platform.machine())").strip() == "aarch64"
    shutil.copy(ROOT / "config" / "leaf.yaml", root / "tmp")
    assert "leaf.yaml: ok" in run(root, "/usr/bin/fared", "-c", "/tmp/leaf.yaml", "--check")
    for program in [name for names in contents.PROGRAMS.values() for name in names]:
        assert "usage" in run(root, f"/usr/bin/{program}", "--help").lower()


def test_what_it_computes_is_the_same_as_here(root: Path):
    """A database of a capture and its routes, with all that is compiled: NumPy, SciPy, msgspec."""
    shutil.copy(ROOT / "tests/data/ospf/frr-database/capture.pcap", root / "tmp")
    made = run(root, CLI, "lsdb", "from-pcap", "/tmp/capture.pcap")
    (root / "tmp/lsdb.json").write_text(made)
    found = run(root, CLI, "spf", "--all", "--json", "--lsdb", "/tmp/lsdb.json")
    words = ("spf", "--all", "--json", "--lsdb", str(root / "tmp/lsdb.json"))
    here = (sys.executable, "-m", "fared.management.cli.main", *words)
    expected = subprocess.run(here, capture_output=True, text=True, check=True).stdout
    assert json.loads(found)["roots"]
    assert found == expected
