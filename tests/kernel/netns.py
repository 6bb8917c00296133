"""Network namespaces for tests: made, entered and removed again."""

import contextlib
import ctypes
import functools
import itertools
import os
import secrets
import socket
import subprocess

import pytest

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_count = itertools.count()
_unique = f"kfib{secrets.token_hex(3)}"


def run(command: str, namespace: str | None = None) -> str:
    """Run a command, given as one line without quotes; return what it printed."""
    words = command.split()
    if namespace is not None:
        words = ["ip", "netns", "exec", namespace, *words]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


@functools.cache
def why_not() -> str | None:
    """Why namespaces cannot be made here; None if they can."""
    name = f"{_unique}probe"
    done = subprocess.run(
        ["ip", "netns", "add", name], check=False, capture_output=True, text=True, timeout=30
    )
    if done.returncode:
        return f"needs root, or a user namespace (unshare -Urnm): {done.stderr.strip()}"
    run(f"ip netns del {name}")
    return None


def skip_without_namespaces() -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)


def _setns(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def inside(namespace: str):
    """Let this thread act in a namespace: sockets it opens there stay there."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        _setns(there)
        yield
    finally:
        _setns(home)
        os.close(there)
        os.close(home)


@contextlib.contextmanager
def packet_socket(namespace: str, interface: str):
    """A socket that sends any frame out of an interface."""
    with inside(namespace):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    with sock:
        with inside(namespace):
            sock.bind((interface, 0))
        yield sock


class Namespaces:
    """Namespaces of one test; ``pair`` joins two with a veth of distinct interface indexes."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._index = itertools.count(100)

    def add(self) -> str:
        name = f"{_unique}x{next(_count)}"
        run(f"ip netns add {name}")
        self.names.append(name)
        run("ip link set lo up", name)
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
            run(f"ip netns del {name}")
