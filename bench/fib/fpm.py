"""Routes by FPM: 20,000 of two next hops to the last acknowledgement, beside zebra sending them.

The peer is a process that does as little as possible: it reads, and echoes each route as SONiC's
``fpmsyncd`` acknowledges it. zebra (module ``dplane_fpm_nl``, next hops inline as here) finds the
same routes in its kernel before the peer listens. Times are from the connection: to the last
acknowledgement read here, to the last byte that the peer has read of zebra, which takes none.

Then the weights of one group change, which 10,000 of the routes use: the kernel has one message for
that, FPM one for each route, since next hops are inline.

``python -m bench fib/fpm``
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import select
import shutil
import signal
import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.lab.sandboxed import required, skipped
from bench.report import show
from bench.rows import compared
from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix, format_address, ipv4_prefix
from fared.extensions.lab.namespaces import Netns
from fared.fpm.session import FpmSession
from fared.paths.fib.model import FibState, Member

ROUTES, CHANGED = 20_000, 10_000
PROTOCOL, METRIC = 201, 20
PORT = 2620
ZEBRA = "/usr/lib/frr/zebra"
LINKS = {"Ethernet0": 0x0A000001, "Ethernet4": 0x0A000003}
PATIENCE = 120.0
_PORTION = 1 << 16
_SETTLED = 1.0
_HEADER = struct.Struct(">BBH")
_MESSAGE = struct.Struct("=IHHII")
_NEW, _OFFLOAD = 24, 0x4000
_TABLE = struct.pack("=HHII", 8, 15, 0, 0)[:8]
_TICK = os.sysconf("SC_CLK_TCK")


def prefix(number: int) -> Prefix:
    """Return the prefix of a route."""
    return ipv4_prefix(0x14000000 + (number << 8), 24)


def state() -> FibState:
    """Return two groups of the two next hops: of routes that change, and of the others."""
    made = FibState()
    for ifindex, gateway in enumerate(LINKS.values(), 10):
        made.nexthops[ifindex] = (ifindex, FAMILY_IPV4, gateway, False)
    for group, second in ((100, 2), (101, 3)):
        made.groups[group] = (Member(10, 1), Member(11, second))
    made.routes = {prefix(n): 100 if n < CHANGED else 101 for n in range(ROUTES)}
    return made


# -- the peer ------------------------------------------------------------------------------------


def _echo(listening: socket.socket) -> None:
    """Serve one client: echo each route with the flag of a route that was taken."""
    client, _ = listening.accept()
    rest = b""
    while data := client.recv(_PORTION):
        rest += data
        acks: list[bytes] = []
        while len(rest) >= _HEADER.size:
            length = _HEADER.unpack_from(rest)[2]
            if len(rest) < length:
                break
            acks += _acks(rest[_HEADER.size : length])
            rest = rest[length:]
        client.sendall(b"".join(acks))


def _acks(frame: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(frame):
        length, kind, *_ = _MESSAGE.unpack_from(frame, at)
        if kind == _NEW:
            body = frame[at + _MESSAGE.size : at + length]
            body = body[:8] + struct.pack("=I", _OFFLOAD) + _TABLE + body[12:]
            message = _MESSAGE.pack(_MESSAGE.size + len(body), kind, 0x401, 0, 0) + body
            yield _HEADER.pack(1, 1, _HEADER.size + len(message)) + message
        at += length


@contextmanager
def _peer() -> Iterator[int]:
    """Run the peer in a process of its own; yield its port."""
    listening = socket.create_server(("127.0.0.1", 0))
    process = multiprocessing.get_context("fork").Process(target=_echo, args=(listening,))
    process.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.close()
        process.kill()
        process.join()


# -- ours ----------------------------------------------------------------------------------------


class Sender:
    """A session and its socket."""

    def __init__(self, port: int) -> None:
        self.wanted = state()
        self.session = FpmSession(
            PROTOCOL,
            {FAMILY_IPV4: METRIC, FAMILY_IPV6: METRIC},
            wanted=lambda: self.wanted,
            names=dict(enumerate(LINKS, 10)).get,
        )
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)

    def until_acknowledged(self) -> dict[str, float]:
        """Send what is to be sent; return seconds, CPU and what was sent."""
        session, before = self.session, self.session.counts.copy()
        started, cpu, left = time.perf_counter(), time.process_time(), b""
        while session.waiting or left:
            writing = [self.socket] if left or session.has_output() else []
            readable, writable, _ = select.select([self.socket], writing, [], PATIENCE)
            if readable and session.received(self.socket.recv(_PORTION), time.monotonic()):
                raise RuntimeError("a bad acknowledgement")
            if writable:
                left = left or session.writable(_PORTION, time.monotonic())
                left = left[self.socket.send(left) :]
        done = session.counts - before
        return {
            "seconds": time.perf_counter() - started,
            "cpu": time.process_time() - cpu,
            "messages": done["put"] + done["delete"],
            "bytes": done["bytes-sent"],
        }


def ours() -> dict[str, Any]:
    """Measure a replay, and then changed weights."""
    with _peer() as port:
        before = _resident(os.getpid())
        sender = Sender(port)
        sender.session.connected(time.monotonic())
        found: dict[str, Any] = {"replay": sender.until_acknowledged()}
        found["memory"] = _resident(os.getpid()) - before
        sender.wanted.groups[100] = (Member(10, 1), Member(11, 5))
        sender.session.touch(map(prefix, range(CHANGED)))
        found["changed"] = sender.until_acknowledged()
        sender.socket.close()
    return found


# -- zebra ---------------------------------------------------------------------------------------


class Zebra:
    """zebra in a namespace whose kernel has the routes."""

    def __init__(self, netns: Netns, home: Path) -> None:
        self._netns, self._home = netns, home
        for parent in (home, home.parent):
            parent.chmod(0o777)  # FRR's daemons are not root
        for number, name in enumerate(LINKS):
            lines = [f"link add {name} type veth peer name far{number}", f"link set {name} up"]
            lines += [f"link set far{number} up", f"addr add 10.0.0.{2 * number}/31 dev {name}"]
            netns.batch("ip", ["link set lo up", *lines])
        netns.batch("ip", [self._route(number) for number in range(ROUTES)])
        config = "hostname zebra\nno fpm use-next-hop-groups\nfpm address 127.0.0.1\n"
        (home / "zebra.conf").write_text(config)
        files = ("-f", str(home / "zebra.conf"), "-i", str(home / "zebra.pid"))
        sockets = ("-z", str(home / "zserv"), "--vty_socket", str(home), "-P", "0")
        program = [ZEBRA, "-M", "dplane_fpm_nl", *files, *sockets]
        self.process = netns.start(program, home / "zebra.log")

    @staticmethod
    def _route(number: int) -> str:
        first, second = (format_address(FAMILY_IPV4, gateway) for gateway in LINKS.values())
        weight = 2 if number < CHANGED else 3
        return (
            f"route add {prefix(number)} metric {METRIC}"
            f" nexthop via {first} weight 1 nexthop via {second} weight {weight}"
        )

    def await_routes(self) -> None:
        """Wait until it has read the routes of its kernel. Raises RuntimeError."""
        tool = ["vtysh", "--vty_socket", str(self._home), "-c", "show ip route summary"]
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            words = self._netns.run(tool, check=False).stdout.split()
            if "kernel" in words and int(words[words.index("kernel") + 1]) >= ROUTES:
                return
            time.sleep(0.2)
        raise RuntimeError("zebra has not read its routes")

    def sends(self) -> dict[str, float]:
        """Listen; return seconds and CPU from its connection to its last byte."""
        with self._netns.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
            listening.bind(("127.0.0.1", PORT))
            listening.listen()
            listening.settimeout(PATIENCE)
            cpu = self._cpu()
            client, _ = listening.accept()
        started = last = time.perf_counter()
        taken = 0
        with client:
            client.settimeout(_SETTLED)
            try:
                while data := client.recv(_PORTION):
                    taken, last = taken + len(data), time.perf_counter()
            except TimeoutError:
                pass
        return {"seconds": last - started, "cpu": self._cpu() - cpu, "bytes": taken}

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def close(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def theirs() -> dict[str, Any]:
    """Measure zebra, in a sandbox."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        netns = Netns.create(f"fpmb{os.getpid()}")
        stack.callback(netns.delete)
        zebra = Zebra(netns, home)
        stack.callback(zebra.close)
        zebra.await_routes()
        found: dict[str, Any] = {"replay": zebra.sends()}
        found["memory"] = _resident(zebra.process.pid)
        return found


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def rows() -> list[dict[str, Any]]:
    """Measure both; zebra where it is installed."""
    mine = ours()
    other: dict[str, Any] = {}
    if shutil.which(ZEBRA) and skipped() is None:
        other = required("fpm-zebra", theirs)
    replay, zebra = mine["replay"], other.get("replay", {})
    changed = mine["changed"]
    label = f"{ROUTES:,} routes of two next hops"
    sent = f"{replay['messages']:,} messages, {replay['bytes'] / 1e6:.1f} MB here: rows that are"
    sent += f" unknown are deleted first; {zebra.get('bytes', 0) / 1e6:.1f} MB of zebra"
    return [
        {
            **compared(f"{label}: to the last", replay["seconds"], zebra.get("seconds"), "s"),
            "note": f"{sent}; here with, there without acknowledgements",
        },
        compared(f"{label}: CPU", replay["cpu"], zebra.get("cpu"), "s"),
        {
            **compared(f"{label}: memory", mine["memory"] / 1e6, None, "MB"),
            "note": f"of the session here; zebra in all {other.get('memory', 0) / 1e6:.0f} MB",
        },
        {
            **compared(
                f"weights of {CHANGED:,} routes: to the last", changed["seconds"], None, "s"
            ),
            "note": f"{changed['messages']:,} messages, {changed['bytes'] / 1e6:.1f} MB, "
            f"{changed['cpu']:.2f} s of CPU; the kernel has one message for a group",
        },
    ]


if __name__ == "__main__":
    show(rows())
