"""Everything the fared nodes of a fabric send, recorded and judged by others.

tcpdump records what leaves the node, Wireshark's dissector decodes it, and the logs of FRR and
BIRD tell whether they took offence at anything.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import dpkt

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
FRR_BEGAN_ANEW = r"Neighbor state is ExStart, packet discarded|Negotiation fails"
"""FRR 8.4 at times falls back to ExStart by itself as a link comes up; a tenth of a second later it
is Full. It says this of what we sent before we could know."""


ISIS = "not ip and not ip6 and not arp"
"""802.2 frames: on the device ``any`` the filter knows no better word for them."""

_IP_HEADER, _OSPF_HEADER, _LSA_HEADER = 20, 24, 20
_FRAGMENT = 0x3FFF  # more to come, or not the first
_LS_UPDATE = 4


class Verdict(NamedTuple):
    """What the dissector says: packets by type, those with a flaw, how many came in fragments.

    ``links`` counts packets by the index of the interface they left by, ``lsas`` the LSAs in them,
    and ``bad_lsas`` holds those with a wrong checksum, which Wireshark 4.0 shows but does not check.
    """

    kinds: Counter[str]
    flawed: list[str]
    fragments: int
    links: Counter[int]
    lsas: int
    bad_lsas: list[str]


class Recordings:
    """tcpdump in every fared node of a fabric, from before the daemons start.

    ``what`` is recorded, in tcpdump's words: OSPF, or ``ISIS``.
    """

    def __init__(self, fabric: Fabric, directory: Path, what: str = "ip proto 89") -> None:
        self.fabric = fabric
        self.directory = directory
        self.what = what
        self._running: list[subprocess.Popen[bytes]] = []
        if shutil.which("tcpdump") is None:
            return
        directory.mkdir()
        names = [plan.name for plan in fabric.plan.routers if plan.node.kind == "fared"]
        for name in names:
            self._start(name)
        for name in names:
            log = self._log(name)
            until(lambda g=log: b"listening on" in g.read_bytes(), 10.0, f"tcpdump of {name}")

    def _start(self, name: str) -> None:
        command = ["tcpdump", "-i", "any", "-Q", "out", "-U", "-Z", "root", "-s", "0"]
        command += ["-w", str(self.path(name)), self.what]
        self._running.append(self.fabric.node(name).netns.start(command, self._log(name)))

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

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

    def judge(self, *names: str) -> Verdict:
        """Have all packets of some nodes decoded, as one recording."""
        return judge(self.merged(*names))

    def merged(self, *names: str) -> Path:
        """The recordings of some nodes in one file."""
        path = self.path(names[0])
        if len(names) > 1:
            path = self.directory / "several.merged"
            parts = [str(self.path(name)) for name in names]
            subprocess.run(["mergecap", "-w", str(path), *parts], timeout=60, check=True)
        return path


def judge(recording: Path) -> Verdict:
    """Decode what tcpdump recorded on all interfaces of a node, or of several nodes."""
    command = ["tshark", "-n", "-r", str(recording), "-V", "-O", "ip,ospf"]
    command += ["-o", "ip.check_checksum:TRUE"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    kinds = Counter(_MESSAGE.findall(done.stdout))
    frames = re.split(r"^(?=Frame \d+:)", done.stdout, flags=re.MULTILINE)
    flawed = [frame for frame in frames if _FLAW.search(frame)]
    fragments = done.stdout.count("[Fragment count: ")
    links: Counter[int] = Counter()
    bad_lsas, lsas = [], 0
    for ifindex, packet in _packets(recording):
        links[ifindex] += 1
        for lsa in _lsas(packet):
            lsas += 1
            if not _fletcher_holds(lsa):
                bad_lsas.append(lsa.hex())
    return Verdict(kinds, flawed, fragments, links, lsas, bad_lsas)


def _packets(recording: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the interface index and the IP packet of every frame (Linux cooked capture 2)."""
    with recording.open("rb") as file:
        for _, frame in dpkt.pcap.UniversalReader(file):
            cooked = dpkt.sll2.SLL2(frame)
            yield cooked.intindex, bytes(cooked.data)


def _lsas(packet: bytes) -> Iterator[bytes]:
    """Yield the LSAs of an update that is one packet."""
    (fragment,) = struct.unpack_from("!H", packet, 6)
    ospf = packet[_IP_HEADER:]
    if fragment & _FRAGMENT or ospf[1] != _LS_UPDATE:
        return
    (count,) = struct.unpack_from("!I", ospf, _OSPF_HEADER)
    offset = _OSPF_HEADER + 4
    for _ in range(count):
        (length,) = struct.unpack_from("!H", ospf, offset + 18)
        yield ospf[offset : offset + max(length, _LSA_HEADER)]
        offset += length


def _fletcher_holds(lsa: bytes) -> bool:
    """Whether both sums over an LSA without its age come to zero (RFC 905 annex B)."""
    first = second = 0
    for byte in lsa[2:]:
        first += byte
        second += first
    return first % 255 == 0 and second % 255 == 0


def complaints(fabric: Fabric, forgiven: str = r"(?!)") -> dict[str, list[str]]:
    """What the logs of the FRR and BIRD nodes hold against anybody, but for what is forgiven."""
    patterns = {"frr": (_FRR_COMPLAINT, _FRR_HARMLESS), "bird": (_BIRD_COMPLAINT, _BIRD_HARMLESS)}
    found: dict[str, list[str]] = {}
    for plan in fabric.plan.routers:
        if plan.node.kind not in patterns:
            continue
        complaint, harmless = patterns[plan.node.kind]
        for log in fabric.node(plan.name).directory.glob("*.log"):
            lines = log.read_text("utf-8", "replace").splitlines()
            bad = [line for line in lines if complaint.search(line) and not harmless.search(line)]
            bad = [line for line in bad if not re.search(forgiven, line)]
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
