"""The packages in a clean root of each release, under its systemd: installed, reloaded, restarted
with a refused file, upgraded under traffic, purged. The machine is leaf L1 of a fabric whose other
routers run from the source tree."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deb import build
from deb.prepare import NEW, OLD, clean, package
from deb.releases import RELEASES, Release
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.namespaces import Netns
from fared.extensions.lab.waiting import await_paths
from tests.lab.stream import Stream
from tests.lab.two_leaves import WAYS, help_restarts, topology
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.netns,
    pytest.mark.soak,
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(os.geteuid() != 0, reason="a system of its own needs root"),
]

_CGROUP = """
set -e
mount --make-rprivate /
mount -t cgroup2 cgroup2 /mnt
mkdir -p /mnt/$2
echo $$ > /mnt/$2/cgroup.procs
exec unshare --pid --ipc --uts --cgroup --fork --kill-child sh -c "$3" boot "$1"
"""
"""systemd has a part of the control groups to itself: arguments are root, name, next script."""
_CLEAN_UP = """
mount --make-rprivate /
mount -t cgroup2 cgroup2 /mnt && find /mnt/$1 -depth -type d -exec rmdir {} +
"""
_BOOT = """
set -e
mount --bind $1 $1 && cd $1
mount -t proc proc proc && mount -t sysfs -o ro sys sys && mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run && mount -t tmpfs tmpfs dev
for device in null zero full random urandom tty; do
  touch dev/$device && mount --bind /dev/$device dev/$device
done
mkdir dev/pts dev/shm dev/mqueue dev/hugepages
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts && ln -s pts/ptmx dev/ptmx
exec chroot . env -i container=lxc /lib/systemd/systemd --system
"""
_NOT_OURS = ("proc", "sys", "dev", "run", "tmp", "var/log", "var/cache", "var/lib/dpkg", "srv")
_BACKUPS = {f"etc/{name}-" for name in ("passwd", "group", "shadow", "gshadow")} | {"etc/.pwd.lock"}


class Machine:
    """A clean root in a network namespace, with systemd as process 1."""

    def __init__(self, root: Path, netns: Netns) -> None:
        self.root = root
        self._group = "fared-test"
        script = ("sh", "-c", _CGROUP, "cgroup", str(root), self._group, _BOOT)
        with netns.entered():
            self._outer = subprocess.Popen(("unshare", "--mount", *script))
        self.init = 0
        wait_for(self._is_up, 30, "systemd runs")

    def _is_up(self) -> bool:
        file = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children")
        below = file.read_text().split()
        if not below:
            return False
        self.init = int(below[0])
        return self.run("systemctl", "is-system-running", check=False).strip() in (
            "running",
            "degraded",  # a getty has no terminal
        )

    def run(self, *command: str, check: bool = True) -> str:
        into = (
            "nsenter",
            "--target",
            str(self.init),
            "-m",
            "-p",
            "-n",
            "-i",
            "-u",
            "-C",
            "-r",
            "-w",
        )
        done = subprocess.run(
            (*into, *command), capture_output=True, text=True, check=False, timeout=120
        )
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout if check else done.stdout + done.stderr

    def files(self) -> set[str]:
        """All files that packages own or make, by name."""
        found = set()
        for directory, below, names in os.walk(self.root):
            inside = os.path.relpath(directory, self.root)
            below[:] = [b for b in below if os.path.normpath(f"{inside}/{b}") not in _NOT_OURS]
            found.update(os.path.normpath(f"{inside}/{name}") for name in (*names, *below))
        return found - _BACKUPS

    def status(self) -> dict:
        return json.loads(self.run("fared-cli", "--json", "show", "status"))

    def repaired(self) -> int:
        """Objects in the kernel that fared wrote again, since others changed them."""
        rows = json.loads(self.run("fared-cli", "--json", "show", "counters"))["counters"]
        return sum(row["value"] for row in rows if row["name"] == "drift")

    def restarted(self) -> str | None:
        """The result of the last graceful restart."""
        found = json.loads(self.run("fared-cli", "--json", "show", "graceful-restart"))
        last = found["protocols"][0]["restarted"]
        return None if last is None else str(last["result"])

    def close(self) -> None:
        os.kill(self.init, signal.SIGKILL)
        self._outer.wait(30)
        command = ("unshare", "--mount", "sh", "-c", _CLEAN_UP, "clean", self._group)
        subprocess.run(command, check=True, timeout=30)


def prepared(release: Release) -> bool:
    packages = [package(release, name, v) for name in build.PACKAGES for v in (OLD, NEW)]
    return all(file.exists() for file in (clean(release), *packages))


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: release.name)
def release(request: pytest.FixtureRequest) -> Release:
    if not prepared(request.param):
        pytest.skip("not prepared: make test-deb")
    return request.param


@pytest.fixture
def root(release: Release, tmp_path: Path) -> Iterator[Path]:
    """A root with packages of the release only."""
    made = tmp_path / "clean"
    made.mkdir()
    subprocess.run(("tar", "-C", str(made), "-xf", str(clean(release))), check=True)
    yield made
    shutil.rmtree(made)


@pytest.fixture(params=["ospf", "isis"])
def fabric(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fabric]:
    """A small fabric with graceful restart, in which L1 has no daemon any more."""
    path = tmp_path / "packages.clab.yml"
    path.write_text(topology("packages", protocol=request.param))
    with Fabric.from_file(path, directory=tmp_path / "state") as running:
        assert await_paths(running, 30) is not None
        help_restarts(running, request.param)
        running.stop_node("L1")
        yield running


@pytest.fixture
def machine(fabric: Fabric, root: Path) -> Iterator[Machine]:
    booted = Machine(root, fabric.node("L1").netns)
    yield booted
    booted.close()


def put(machine: Machine, fabric: Fabric) -> None:
    """Configure L1 as an operator would: the places are those of the service."""
    config = yaml.safe_load((fabric.node("L1").directory / "fared.yaml").read_text())
    del config["api"], config["state-directory"]
    (machine.root / "etc/fared/fared.yaml").write_text(yaml.safe_dump(config))


def install(machine: Machine, release: Release, version: str, *names: str) -> str:
    for name in names:
        shutil.copy(package(release, name, version), machine.root / "srv" / f"{name}.deb")
    files = " ".join(f"/srv/{name}.deb" for name in names)
    return machine.run("sh", "-c", f"dpkg --install {files} 2>&1")


def warned(machine: Machine, since: str) -> str:
    """What the journal has as a warning, or worse, of the service."""
    how = ("--unit=fared", "--priority=warning", "--output=cat", f"--since={since}")
    return machine.run("journalctl", *how)


def refuse(machine: Machine, fabric: Fabric) -> None:
    """A refused file costs no route: not at a reload, and not at a restart."""
    file, since = machine.root / "etc/fared/fared.yaml", machine.run("date", "+%F %T").strip()
    good = file.read_text()
    file.write_text("nonsense: 1\n")
    process = machine.run("systemctl", "show", "--property=MainPID", "fared")
    assert "failed" in machine.run("systemctl", "reload", "fared", check=False)
    assert machine.run("systemctl", "show", "--property=MainPID", "fared") == process
    assert "nonsense" in warned(machine, since)
    machine.run("systemctl", "restart", "fared")
    assert await_paths(fabric, 30) is not None
    assert "config-refused" in warned(machine, since)
    file.write_text(good)
    machine.run("systemctl", "reload", "fared")
    assert machine.status()["config"]["last_reload_ok"]


def start_without_history(machine: Machine) -> None:
    """Nothing can run in place of a refused file: the service has failed, and stays so."""
    file = machine.root / "etc/fared/fared.yaml"
    given = file.read_text()
    file.write_text("nonsense: 1\n")
    machine.run("systemctl", "start", "fared", check=False)
    told = machine.run("systemctl", "show", "--property=NRestarts,ActiveState", "fared")
    assert set(told.split()) == {"NRestarts=0", "ActiveState=failed"}
    machine.run("systemctl", "reset-failed", "fared")
    file.write_text(given)


def meet_networkd(machine: Machine) -> None:
    """From systemd 256 on, networkd deletes nothing of fared when it configures an interface."""
    version = int(machine.run("systemctl", "--version").split()[1])
    before = machine.repaired()
    network = machine.root / "etc/systemd/network/managed.network"
    network.write_text("[Match]\nName=managed0\n[Network]\nAddress=192.0.2.1/24\n")
    try:
        machine.run("systemctl", "start", "systemd-networkd")
        machine.run("ip", "link", "add", "managed0", "type", "veth", "peer", "name", "far0")
        machine.run("ip", "link", "set", "far0", "up")
        address = ("ip", "address", "show", "managed0")
        wait_for(lambda: "192.0.2.1" in machine.run(*address), 20, "networkd runs")
        drift = machine.repaired() - before
        print(f"\nsystemd {version}: {drift} objects repaired")  # noqa: T201
        assert version < 256 or drift == 0
    finally:
        machine.run("ip", "link", "delete", "managed0", check=False)
        machine.run("systemctl", "stop", "systemd-networkd.socket", "systemd-networkd", check=False)
        network.unlink()


def test_the_packages_install_upgrade_under_traffic_without_loss_and_leave_nothing(
    machine: Machine, release: Release, fabric: Fabric
):
    before, users = machine.files(), (machine.root / "etc/passwd").read_text()

    # Installed: no service runs, and the tools are another package.
    install(machine, release, OLD, "fared")
    assert "inactive" in machine.run("systemctl", "is-active", "fared", check=False)
    assert "expected an ospf, isis or bgp section" in machine.run("fared", "--check", check=False)
    assert "install fared-tools" in machine.run("fared-cli", "spf", check=False)
    install(machine, release, OLD, "fared-tools")
    assert "--lsdb" in machine.run("fared-cli", "spf", "--help")
    assert "fared-lab" in machine.run("fared-lab", "--help")

    start_without_history(machine)

    # Started by systemd, confined as the unit says; the daemon may set sysctls, and save.
    put(machine, fabric)
    machine.run("systemctl", "start", "fared")
    assert await_paths(fabric, 30) is not None
    assert machine.status()["version"] == OLD + release.suffix
    assert "PASS" in machine.run("fared-cli", "validate")
    machine.run("fared-cli", "config", "apply", "/etc/fared/fared.yaml", "--comment", "saved")
    written = (machine.root / "etc/fared/fared.yaml").read_text()

    refuse(machine, fabric)
    meet_networkd(machine)
    process = machine.run("systemctl", "show", "--property=MainPID", "fared")

    # Upgraded: the same process id with the new version, and not a packet lost.
    streams = [Stream.between(fabric, *way, flows=16, rate=2000) for way in WAYS]
    try:
        wait_for(lambda: all(s.flowing() for s in streams), 5, "traffic")
        said = install(machine, release, NEW, "fared", "fared-tools")
        status = machine.status()
        wait_for(lambda: all(s.flowing() for s in streams), 5, "traffic afterwards")
    finally:
        for one in streams:
            one.finish()
    lost, sent = [one.lost for one in streams], sum(one.sent for one in streams)
    print(f"\nupgrade: {sum(lost)} of {sent} packets lost\n{said}")  # noqa: T201
    assert lost == [0, 0]
    assert status["version"] == NEW + release.suffix
    assert machine.run("systemctl", "show", "--property=MainPID", "fared") == process
    wait_for(lambda: machine.restarted() is not None, 30, "the restart is over", pause=0.2)
    assert machine.restarted() == "completed"
    assert (machine.root / "etc/fared/fared.yaml").read_text() == written
    assert "internal-error" not in machine.run("journalctl", "--unit=fared", "--output=cat")

    # A file that the new version refuses: the daemon keeps running, and dpkg says so.
    (machine.root / "etc/fared/fared.yaml").write_text("nonsense: 1\n")
    said = install(machine, release, OLD, "fared", "fared-tools")
    assert f"version {NEW + release.suffix} still runs" in said
    assert "expected" in said
    assert machine.status()["version"] == NEW + release.suffix

    # Purged: no route, no file, no user.
    machine.run("systemctl", "enable", "fared")
    machine.run("dpkg", "--purge", "fared-tools", "fared")
    assert fabric.node("L1").netns.ip("route", "show", "proto", "201") == ""
    assert machine.files() - before == set()
    assert (machine.root / "etc/passwd").read_text() == users
    assert "fared" not in (machine.root / "etc/group").read_text()
