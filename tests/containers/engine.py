"""podman, with storage of its own: images are made once (``prepare``), containers by a test.

runc and limits below those of the session suit machines without systemd and without
CAP_SYS_RESOURCE; nothing of the machine's own containers is read or changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PREPARED = ROOT / "build" / "containers"
IMAGES = PREPARED / "storage"
STAMP = PREPARED / "made-from"
CGROUPS = Path("/sys/fs/cgroup")
BASE = "docker.io/library/debian:bookworm-slim"
ROUTER, PEERS = "localhost/fared", "localhost/fared-peers"
DEVICE = "localhost/netlab/fared"

_MADE_FROM = (
    ".dockerignore",
    "pyproject.toml",
    "containerlab",
    "fared",
    "systemd",
)
_CONTAINERS = """\
[containers]
default_ulimits = ["nofile=16384:16384", "nproc=16384:16384"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
tmp_dir = "{here}/tmp"
"""
_STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{here}/storage"
runroot = "{here}/run"
[storage.options]
additionalimagestores = [{images}]
"""


class Podman:
    """Runs podman with storage below ``here``; images are those of ``images`` too."""

    def __init__(self, here: Path, images: Path | None = None) -> None:
        here.mkdir(parents=True, exist_ok=True)
        files = {
            "CONTAINERS_CONF": _CONTAINERS.format(here=here),
            "CONTAINERS_STORAGE_CONF": _STORAGE.format(
                here=here, images="" if images is None else f'"{images}"'
            ),
        }
        self.cgroup = f"/fared-test-{os.getpid()}"
        """The control group of all containers, which nothing else is in."""
        # what podman mounts below its storage does not outlast its command
        self._program = ("unshare", "--mount", "podman") if images is None else ("podman",)
        # without systemd nothing checks the health of containers at intervals: a test does
        self._environment = {**os.environ, "DISABLE_HC_SYSTEMD": "true"}
        for variable, text in files.items():
            file = here / f"{variable.lower()}.conf"
            file.write_text(text)
            self._environment[variable] = str(file)

    def run(self, *words: str | Path, seconds: float = 60, check: bool = True) -> str:
        """Return what a command prints, and its errors with it if it may fail."""
        done = subprocess.run(
            (*self._program, *map(str, words)),
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert not check or not done.returncode, f"podman {words}: {done.stdout}{done.stderr}"
        return done.stdout if check else done.stdout + done.stderr

    def succeeds(self, *words: str) -> bool:
        """Whether a command ends with exit code 0."""
        command = (*self._program, *words)
        return not subprocess.run(
            command, env=self._environment, capture_output=True, timeout=60, check=False
        ).returncode

    def watch(self, *words: str | Path, seconds: float) -> None:
        """Run a command whose output a person follows. Raises CalledProcessError."""
        command = (*self._program, *map(str, words))
        subprocess.run(command, env=self._environment, timeout=seconds, check=True)

    def problem(self) -> str | None:
        """Why no container runs on this machine; None: one did."""
        try:
            found = self.run("run", "--rm", "--network", "none", BASE, "echo", "runs", check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        lines = found.strip().splitlines()
        return None if lines and lines[-1] == "runs" else found.strip()

    def remove_all(self) -> None:
        """End all containers, and remove their control groups."""
        self.run("rm", "--all", "--force", "--time", "0", check=False)
        for top in (*CGROUPS.glob(f".{self.cgroup}"), *CGROUPS.glob(f"*{self.cgroup}")):
            for below, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):  # one that is still in use
                    Path(below).rmdir()


def absent() -> str | None:
    """Why this machine cannot try to run containers; None: it can."""
    if os.geteuid():
        return "not root: podman needs it for network namespaces of containers"
    tools = ("podman", "runc", "mmdebstrap")
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return f"not installed: {', '.join(missing)}" if missing else None


def unprepared() -> str | None:
    """Why tests cannot use the images; None: they are made from this source tree."""
    if (reason := absent()) is not None:
        return reason
    if not STAMP.exists():
        return "no image: make test-containers"
    first, _, problem = STAMP.read_text().partition("\n")
    if problem:
        return problem
    return (
        None
        if first == made_from()
        else "the image is of another source tree: make test-containers"
    )


def made_from() -> str:
    """Identify everything that the images are made from."""
    found = hashlib.sha256()
    for path in sorted(_files()):
        found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def _files() -> Iterable[Path]:
    for name in _MADE_FROM:
        top = ROOT / name
        below = (top,) if top.is_file() else top.rglob("*")
        yield from (file for file in below if file.is_file() and not _ignored(file))


def _ignored(file: Path) -> bool:
    if "netlab" in file.parts:
        return file.name != "Dockerfile"
    return file.suffix == ".md" or "__pycache__" in file.parts
