"""Recordings of all packets that the fared nodes of a fabric send, and their checks.

tcpdump records the packets that leave a node, Wireshark's dissector decodes them, and the logs of
FRR and BIRD show whether they rejected any.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import dpkt
import pytest

from fared.extensions.lab.fabric import Fabric, RunningNode
from tests.peers.peers import fared
from tests.waiting import wait_for

_MESSAGE = re.compile(r"Message Type: ([A-Z][A-Za-z ]+?)(?: Packet)? \(")
_FLAW = re.compile(r"incorrect|Malformed|Expert Info \((Warning|Error)")
_FRR_HARMLESS = re.compile(
    # FRR's own start-up order, what its daemons tell each other of interfaces, what it wanted to
    # send on a link that has just failed, that it warns of router LSAs beyond one packet, its own
    # too, and that it may not give the socket of its own vtysh to another group; adjacency changes
    # are printed with complaints
    r"Disabling MPLS support|Common origination for AREA|Missing Link ID|oversized LSA encountered"
    r"|: Cannot find IF \d+ in VRF|AdjChg|vty_serv_un: could chown socket"
    r"|ospf_write failed .*: Network is (unreachable|down)"
)
_FRR_COMPLAINT = re.compile(
    r"\[EC \d+\]|malform|checksum|mismatch|invalid|unknown|too (short|small|large|big)"
    r"|\bbad |drop|wrong|unexpected",  # not the end of a hexadecimal number
    re.IGNORECASE,
)
_FRR_FELL_BACK = re.compile(r"AdjChg: .* -> (Down|Init|2-Way|ExStart)")
_BIRD_COMPLAINT = re.compile(r"<(WARN|ERR|AUTH|RMT|BUG|FATAL)>")
_BIRD_HARMLESS = re.compile(
    r"Missing broadcast address"  # of a /31
    r"|Kernel dropped some netlink messages"  # more routes at once than its buffer holds
    r"|Cannot find next hop"  # the neighbor's router LSA has the link already, its own does not yet
)
FRR_BEGAN_ANEW = r"Neighbor state is ExStart, packet discarded|Negotiation fails"
"""FRR 8.4 at times falls back to ExStart by itself as a link comes up; a tenth of a second later it
is Full. It says this of what we sent before we could know."""


STRANGERS = frozenset({"unicast", "destination", "ttl", "source-network", "neighbor-address"})
"""Reasons for which OSPF packets from off the link are refused: no peer may give any."""

WIRESHARK = pytest.mark.skipif(
    None in map(shutil.which, ("tcpdump", "tshark")), reason="tcpdump or tshark is not installed"
)

OSPF = "ip proto 89"
ISIS = "not ip and not ip6 and not arp"
"""802.2 frames: on the device ``any`` the filter knows no better word for them."""

_IP_HEADER, _OSPF_HEADER, _LSA_HEADER = 20, 24, 20
_FRAGMENT = 0x3FFF  # more to come, or not the first
_LS_UPDATE = 4


class Verdict(NamedTuple):
    """The dissector's result: packets by type, those with errors, the number of fragmented ones.

    ``links`` counts packets by the index of the interface they left by, ``lsas`` the LSAs in them,
    and ``bad_lsas`` holds those with a wrong checksum, which Wireshark 4.0 shows but does not
    check.
    """

    kinds: Counter[str]
    flawed: list[str]
    fragments: int
    links: Counter[int]
    lsas: int
    bad_lsas: list[str]


class Recordings:
    """tcpdump in every fared node of a fabric, from before the daemons start.

    ``what`` is the filter, in tcpdump's syntax: OSPF, or ``ISIS``.
    """

    def __init__(self, fabric: Fabric, directory: Path, what: str = OSPF) -> None:
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
            wait_for(lambda g=log: b"listening on" in g.read_bytes(), 10.0, f"tcpdump of {name}")

    def _start(self, name: str) -> None:
        command = ["tcpdump", "-i", "any", "-Q", "out", "-U", "-Z", "root", "-s", "0"]
        command += ["-w", str(self.path(name)), self.what]
        self._running.append(self.fabric.node(name).netns.start(command, self._log(name)))

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def path(self, name: str) -> Path:
        """The file with the packets of a node."""
        return self.directory / f"{name}.pcap"

    def names(self) -> list[str]:
        """The names of the recorded nodes."""
        return sorted(path.stem for path in self.directory.glob("*.pcap"))

    def stop(self) -> None:
        """End the recordings; the files then have all packets."""
        for handle in self._running:
            handle.terminate()
        for handle in self._running:
            handle.wait()
        self._running.clear()

    def judge(self, *names: str) -> Verdict:
        """Decode all packets of some nodes, as one recording."""
        return judge(self.merged(*names))

    def merged(self, *names: str) -> Path:
        """The recordings of some nodes in one file."""
        path = self.path(names[0])
        if len(names) > 1:
            path = self.directory / "several.merged"
            parts = [str(self.path(name)) for name in names]
            subprocess.run(["mergecap", "-w", str(path), *parts], timeout=60, check=True)
        return path


@contextmanager
def recorded(
    topology: str, directory: Path, what: str = OSPF
) -> Iterator[tuple[Fabric, Recordings]]:
    """Build a fabric and start the recordings, without daemons; remove it after the block."""
    file = directory / "topology.clab.yml"
    file.write_text(topology)
    fabric = Fabric.from_file(file, directory=directory / "state")
    recordings = None
    try:
        fabric.build()
        recordings = Recordings(fabric, directory / "sent", what)
        yield fabric, recordings
    finally:
        if recordings is not None:
            recordings.stop()
        fabric.stop()


def judge(recording: Path) -> Verdict:
    """Decode what tcpdump recorded on all interfaces of a node, or of several nodes."""
    text = dissected(recording, "ip,ospf", "-o", "ip.check_checksum:TRUE")
    kinds = Counter(_MESSAGE.findall(text))
    flawed = [frame for frame in frames_of(text) if _FLAW.search(frame)]
    fragments = text.count("[Fragment count: ")
    links: Counter[int] = Counter()
    bad_lsas, lsas = [], 0
    for ifindex, packet in recorded_packets(recording):
        links[ifindex] += 1
        for lsa in _lsas(packet):
            lsas += 1
            if not fletcher_holds(lsa[2:]):
                bad_lsas.append(lsa.hex())
    return Verdict(kinds, flawed, fragments, links, lsas, bad_lsas)


def dissected(recording: Path, protocols: str, *options: str) -> str:
    """The packets of these protocols in a recording, as tshark prints them."""
    command = ["tshark", "-n", "-r", str(recording), "-V", "-O", protocols, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def frames_of(text: str) -> list[str]:
    """Split text at frames; the first item may be text that precedes the first frame."""
    return re.split(r"^(?=Frame \d+:)", text, flags=re.MULTILINE)


def recorded_packets(recording: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the interface index and the payload of the link layer (Linux cooked capture 2)."""
    with recording.open("rb") as file:
        for _, frame in dpkt.pcap.UniversalReader(file):
            cooked = dpkt.sll2.SLL2(frame)
            yield cooked.intindex, bytes(cooked.data)


def _lsas(packet: bytes) -> Iterator[bytes]:
    """Yield the LSAs of an update that is not fragmented."""
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


def fletcher_holds(covered: bytes) -> bool:
    """Whether both sums over an LSA without its age, or an LSP from its id on, come to zero.

    RFC 905 annex B.
    """
    first = second = 0
    for byte in covered:
        first += byte
        second += first
    return first % 255 == 0 and second % 255 == 0


_COMPLAINTS = {
    "frr": (_FRR_COMPLAINT, _FRR_HARMLESS),
    "bird": (_BIRD_COMPLAINT, _BIRD_HARMLESS),
}


def complains(kind: str, line: str) -> bool:
    """Whether a line in the log of an implementation is a complaint that nothing explains."""
    complaint, harmless = _COMPLAINTS[kind]
    return complaint.search(line) is not None and harmless.search(line) is None


def complaints(fabric: Fabric, forgiven: str = r"(?!)") -> dict[str, list[str]]:
    """The complaints in the logs of the FRR and BIRD nodes, without the expected ones.

    With complaints, adjacencies that FRR lost or restarted are listed, with its reason.
    """
    found: dict[str, list[str]] = {}
    for plan in fabric.plan.routers:
        kind = plan.node.kind
        if kind not in _COMPLAINTS:
            continue
        for log in fabric.node(plan.name).directory.glob("*.log"):
            lines = log.read_text("utf-8", "replace").splitlines()
            bad = [line for line in lines if complains(kind, line)]
            bad = [line for line in bad if not re.search(forgiven, line)]
            if bad:
                bad += [line for line in lines if _FRR_FELL_BACK.search(line)]
                found[f"{plan.name} {log.stem}"] = bad
    return found


LINKS_FLAPPED = frozenset({"update-before-exchange"})
"""Where links fail and heal, one end may begin the adjacency again while the other, which has yet
to notice, still floods: such an update is dropped (RFC 2328 §13)."""


def rejected(fabric: Fabric, forgiven: frozenset[str] = frozenset()) -> dict[str, dict[str, int]]:
    """The packets that the fared nodes rejected, by reason, without the expected ones.

    Packets that a former neighbor sends to a restarted process are rejected correctly, and left
    out.
    """
    return refusals(fabric, "packet-errors", forgiven | {"unknown-neighbor"})


def refusals(fabric: Fabric, group: str, forgiven: frozenset[str]) -> dict[str, dict[str, int]]:
    """The error counters of a group in the fared nodes, by name and reason."""
    found = {}
    for plan in fabric.plan.routers:
        if plan.node.kind == "fared":
            errors = errors_of(fabric.node(plan.name), group)
            if unforgiven := {k: n for k, n in sorted(errors.items()) if k not in forgiven}:
                found[plan.name] = unforgiven
    return found


def errors_of(node: RunningNode, group: str) -> dict[str, int]:
    """The number of packets that a fared node rejected, by reason."""
    rows = fared(node).request("show counters")["counters"]
    return {r["name"]: r["value"] for r in rows if r["group"] == group}
