"""FRR and BIRD in namespaces of their own, each on a link to one for the test: BGP alone."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

from fared.extensions.lab.namespaces import Netns
from tests.waiting import wait_for

OURS, FRR, BIRD = 65001, 65002, 65003
NUMBERS = {"frr": FRR, "bird": BIRD}
LINKS = {"frr": ("10.9.1.1", "10.9.1.2"), "bird": ("10.9.2.1", "10.9.2.2")}
"""Our address and the peer's on each link; the link is named as the peer, ``eth0`` at the peer."""
LINK_LOCAL = {"frr": ("fe80::1:1", "fe80::1:2"), "bird": ("fe80::2:1", "fe80::2:2")}


class BgpSite:
    """The namespaces and programs; files of each program are in a directory of its name.

    Links of those ``numbered`` have IPv4 addresses, all have link-local ones.
    """

    def __init__(self, directory: Path, numbered: Collection[str] = tuple(LINKS)) -> None:
        for parent in (directory, directory.parent):
            parent.chmod(0o755)
        self.directory = directory
        prefix = f"bgp{secrets.token_hex(3)}"
        self.spaces = {name: Netns.create(f"{prefix}{name}") for name in ("test", *LINKS)}
        self.processes: dict[str, list[subprocess.Popen[bytes]]] = {}
        for name in LINKS:
            far = self.spaces[name]
            line = f"link add {name} type veth peer name eth0 netns {far.name}"
            self.spaces["test"].batch(
                "ip", [line, *self._up(name, name, 0, numbered=name in numbered)]
            )
            far.batch("ip", self._up(name, "eth0", 1, numbered=name in numbered))
            (directory / name).mkdir()
            (directory / name).chmod(0o777)  # FRR's daemons are not root

    @staticmethod
    def _up(name: str, interface: str, end: int, *, numbered: bool) -> list[str]:
        addresses = [f"{LINK_LOCAL[name][end]}/64 dev {interface} nodad"]
        if numbered:
            addresses.append(f"{LINKS[name][end]}/30 dev {interface}")
        return [
            f"link set {interface} addrgenmode none",
            *(f"addr add {one}" for one in addresses),
            f"link set {interface} up",
        ]

    def _start(self, name: str, program: str, *arguments: str) -> None:
        log = self.directory / name / f"{Path(program).name}.log"
        process = self.spaces[name].start([program, *arguments], log)
        self.processes.setdefault(name, []).append(process)

    def start_frr(self, text: str) -> None:
        """Start zebra and bgpd; ``text`` is what follows the hostname."""
        home = self.directory / "frr"
        (home / "zebra.conf").write_text("hostname frr\n")
        (home / "bgpd.conf").write_text(f"hostname frr\n{text}")
        for daemon in ("zebra", "bgpd"):
            files = ("-f", str(home / f"{daemon}.conf"), "-i", str(home / f"{daemon}.pid"))
            sockets = ("-z", str(home / "zserv"), "--vty_socket", str(home))
            self._start("frr", f"/usr/lib/frr/{daemon}", *files, *sockets, "-P", "0")
            if daemon == "zebra":
                wait_for((home / "zserv").exists, 30.0, "zebra")

    def start_bird(self, text: str) -> None:
        """Start BIRD; ``text`` is what follows the device protocol."""
        home = self.directory / "bird"
        (home / "bird.conf").write_text(f"router id 10.9.2.2;\nprotocol device {{ }}\n{text}")
        control = ("-s", str(home / "bird.ctl"), "-P", str(home / "bird.pid"))
        self._start("bird", "bird", "-f", "-c", str(home / "bird.conf"), *control)
        wait_for((home / "bird.ctl").exists, 30.0, "bird")

    def kill(self, name: str) -> None:
        """Kill the programs of a peer."""
        for process in self.processes.pop(name, []):
            process.kill()
            process.wait()
        for left in ("zserv", "bird.ctl"):
            (self.directory / name / left).unlink(missing_ok=True)

    def vtysh(self, command: str) -> Any:
        """What bgpd answers as JSON; nothing: it does not run yet."""
        said = self.frr(command)
        return json.loads(said) if said.startswith("{") else {}

    def frr(self, command: str) -> str:
        tool = ["vtysh", "--vty_socket", str(self.directory / "frr"), "-c", command]
        return self.spaces["frr"].run(tool, check=False).stdout

    def birdc(self, command: str) -> str:
        control = str(self.directory / "bird" / "bird.ctl")
        return self.spaces["bird"].run(["birdc", "-s", control, *command.split()]).stdout

    def close(self) -> None:
        for name in list(self.processes):
            self.kill(name)
        for space in self.spaces.values():
            space.delete()
