"""Network namespaces connected by veth links with chosen interface indexes."""

import contextlib
import itertools
import secrets
import socket
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

from fared.extensions.lab.namespaces import Netns

_count = itertools.count()
_unique = f"kfib{secrets.token_hex(3)}"


def run(command: str, namespace: str | None = None) -> str:
    """Run a command, given as one line without quotes; return what it printed.

    In a namespace, /sys is also that of the namespace.
    """
    words = command.split()
    if namespace is not None:
        words = ["ip", "netns", "exec", namespace, *words]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def inside(namespace: str) -> AbstractContextManager[None]:
    """Run a block in a namespace: sockets that this thread opens there remain in it."""
    return Netns(namespace).entered()


@contextlib.contextmanager
def packet_socket(namespace: str, interface: str):
    """A socket that sends any frame out of an interface."""
    with Netns(namespace).socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        with inside(namespace):
            sock.bind((interface, 0))
        yield sock


def neighbor_tables() -> str:
    """Say how full the kernel's neighbor tables are, which all namespaces of a machine share.

    While one is full (net.ipv4.neigh.default.gc_thresh3), hosts do not answer unknown neighbors.
    """
    found = []
    for name in ("arp_cache", "ndisc_cache"):
        heads, *lines = Path("/proc/net/stat", name).read_text("ascii").splitlines()
        rows = [dict(zip(heads.split(), line.split(), strict=True)) for line in lines]
        full = sum(int(row["table_fulls"], 16) for row in rows)
        found.append(f"{name}: {int(rows[0]['entries'], 16)} entries, {full} times full")
    return "; ".join(found)


class Namespaces:
    """Namespaces of one test; ``pair`` connects two by a veth with distinct interface indexes."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._index = itertools.count(100)

    def add(self) -> str:
        name = Netns.create(f"{_unique}x{next(_count)}").name
        self.names.append(name)
        return name

    def pair(
        self, left: str, right: str, name: str, subnet: int | None, mtu: int = 1500
    ) -> tuple[int, int]:
        """``name`` in both, 10.0.subnet.1 and .2/24; returns both interface indexes.

        With ``subnet`` None they have no IPv4 addresses.
        """
        # With equal indexes at both ends the kernel reports a lost carrier up to a second late.
        a, b = next(self._index), next(self._index)
        run(
            f"ip link add {name} netns {left} index {a} mtu {mtu} type veth"
            f" peer name {name} netns {right} index {b} mtu {mtu}"
        )
        for namespace, host in ((left, 1), (right, 2)):
            if subnet is not None:
                run(f"ip address add 10.0.{subnet}.{host}/24 dev {name}", namespace)
            run(f"ip link set {name} up", namespace)
        return a, b

    def close(self) -> None:
        for name in self.names:
            Netns(name).delete()
