"""Everything the fared nodes of a fabric send, recorded and judged by others.

tcpdump records what leaves the node, Wireshark's dissector decodes it, and the logs of FRR and
BIRD tell whether they took offence at anything.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from fared.lab.fabric import Fabric
from tests.peers.peers import fared, until

_MESSAGE = re.compile(r"Message Type: ([A-Z][A-Za-z ]+?)(?: Packet)? \(")
_FLAW = re.compile(r"incorrect|Malformed|Expert Info \((Warning|Error)")
_FRR_HARMLESS = re.compile(
    # FRR's own start-up order, and that it warns of router LSAs beyond one packet, its own too
    r"Disabling MPLS support|Common origination for AREA|Missing Link ID|oversized LSA encountered"
)
_FRR_COMPLAINT = re.compile(
    r"\[EC \d+\]|malform|checksum|mismatch|invalid|unknown|too (short|small|large|big)"
    r"|bad |drop|wrong|unexpected",
    re.IGNORECASE,
)
_BIRD_COMPLAINT = re.compile(r"<(WARN|ERR|AUTH|RMT|BUG|FATAL)>")
_BIRD_HARMLESS = re.compile(
    r"Missing broadcast address"  # of a /31
    r"|Kernel dropped some netlink messages"  # more routes at once than its buffer holds
    r"|Cannot find next hop"  # its neighbor says so already, its own router LSA not yet
)


class Verdict(NamedTuple):
    """What the dissector says: packets by type, those with a flaw, how many came in fragments."""

    kinds: Counter[str]
    flawed: list[str]
    fragments: int


class Recordings:
    """tcpdump in every fared node of a fabric, from before the daemons start."""

    def __init__(self, fabric: Fabric, directory: Path) -> None:
        self.fabric = fabric
        self.directory = directory
        self._running: list[subprocess.Popen[bytes]] = []
        if shutil.which("tcpdump") is None:
            return
        directory.mkdir()
        for plan in fabric.plan.routers:
            if plan.node.kind == "fared":
                self._start(plan.name)

    def _start(self, name: str) -> None:
        log = self.directory / f"{name}.log"
        command = ["tcpdump", "-i", "any", "-Q", "out", "-U", "-Z", "root", "-s", "0"]
        command += ["-w", str(self.path(name)), "ip proto 89"]
        handle = self.fabric.node(name).netns.start(command, log)
        self._running.append(handle)
        until(
            lambda: log.exists() and b"listening on" in log.read_bytes(), 10.0, f"tcpdump of {name}"
        )

    def path(self, name: str) -> Path:
        """Where the packets of a node are."""
        return self.directory / f"{name}.pcap"

    def names(self) -> list[str]:
        """The nodes that are recorded."""
        return sorted(path.stem for path in self.directory.glob("*.pcap"))

    def stop(self) -> None:
        """End the recordings; what was sent is then all in the files."""
        for handle in self._running:
            handle.terminate()
        for handle in self._running:
            handle.wait()
        self._running.clear()

    def judge(self, name: str) -> Verdict:
        """Have all packets of a node decoded."""
        command = ["tshark", "-n", "-r", str(self.path(name)), "-V", "-O", "ip,ospf"]
        command += ["-o", "ip.check_checksum:TRUE"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        kinds = Counter(_MESSAGE.findall(done.stdout))
        frames = re.split(r"^(?=Frame \d+:)", done.stdout, flags=re.MULTILINE)
        flawed = [frame for frame in frames if _FLAW.search(frame)]
        return Verdict(kinds, flawed, done.stdout.count("[Fragment count: "))


def complaints(fabric: Fabric) -> dict[str, list[str]]:
    """What the logs of the FRR and BIRD nodes hold against anybody."""
    patterns = {"frr": (_FRR_COMPLAINT, _FRR_HARMLESS), "bird": (_BIRD_COMPLAINT, _BIRD_HARMLESS)}
    found: dict[str, list[str]] = {}
    for plan in fabric.plan.routers:
        if plan.node.kind not in patterns:
            continue
        complaint, harmless = patterns[plan.node.kind]
        for log in fabric.node(plan.name).directory.glob("*.log"):
            lines = log.read_text("utf-8", "replace").splitlines()
            bad = [line for line in lines if complaint.search(line) and not harmless.search(line)]
            if bad:
                found[f"{plan.name} {log.stem}"] = bad
    return found


def rejected(fabric: Fabric) -> dict[str, dict[str, int]]:
    """What the fared nodes have refused from others, by reason.

    What a neighbor of old sends to a process that has just started is refused rightly, and left
    out.
    """
    found = {}
    for plan in fabric.plan.routers:
        if plan.node.kind == "fared":
            rows = fared(fabric.node(plan.name)).request("show counters")["counters"]
            errors = {r["name"]: r["value"] for r in rows if r["group"] == "packet-errors"}
            errors.pop("unknown-neighbor", None)
            if errors:
                found[plan.name] = errors
    return found
