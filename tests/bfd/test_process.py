"""The process ``fared-bfd`` in namespaces: its packets, its messages, its end."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fared.core.bfd import SessionSettings
from fared.extensions.lab.namespaces import Netns
from fared.kernel.bfdd.sockets import _FAMILIES, read_all, receiving_socket
from fared.kernel.on_link import SAMPLE
from fared.protocols.bfd.messages import (
    VERSION,
    CloseSession,
    Greeting,
    OpenSession,
    Ready,
    SessionKey,
    StateChange,
    Trouble,
)
from fared.protocols.bfd.packet import ControlPacket, State, encode_packet
from tests.bfd.bfdd import Process
from tests.kernel.netns import inside
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

FAST = SessionSettings(50_000, 50_000, 3)
PORT = 3784
SLOW = 3.0
"""Seconds to detect silence with the packet a second of a session that is not up (§6.8.3)."""


@pytest.fixture
def run() -> Iterator[Callable[[Netns, str], Process]]:
    made: list[Process] = []

    def start(netns: Netns, interface: str, **how: bool) -> Process:
        made.append(Process(netns, interface, **how))
        return made[-1]

    yield start
    for process in made:
        process.close()


def addresses(netns: Netns, interface: str, ipv4: str) -> tuple[int, dict[int, bytes]]:
    """The index of an interface, and its addresses by size; it gets the IPv4 one."""
    netns.ip("addr", "add", f"{ipv4}/31", "dev", interface)

    def link_local() -> str:
        words = netns.ip("-6", "addr", "show", "dev", interface, "scope", "link").split()
        ready = "inet6" in words and "tentative" not in words
        return words[words.index("inet6") + 1].partition("/")[0] if ready else ""

    found = wait_for(link_local, 30, "a link-local address")
    index = int(netns.ip("-o", "link", "show", "dev", interface).partition(":")[0])
    return index, {
        4: socket.inet_pton(socket.AF_INET, ipv4),
        16: socket.inet_pton(socket.AF_INET6, found),
    }


@pytest.fixture
def pair(veth: tuple[Netns, Netns], run: Callable[..., Process]) -> tuple:
    """Two processes, and the two keys of each size."""
    return paired(veth, run)


def paired(veth: tuple[Netns, Netns], run: Callable[..., Process], **how: bool) -> tuple:
    """Start two processes, the second one as asked for, and await their sessions."""
    left, right = veth
    near_index, near = addresses(left, "b", "10.9.0.0")
    far_index, far = addresses(right, "a", "10.9.0.1")
    a, b = run(left, "b"), run(right, "a", **how)
    keys = {
        size: (SessionKey(near_index, far[size]), SessionKey(far_index, near[size]))
        for size in (4, 16)
    }
    for size, (key_a, key_b) in keys.items():
        a.send(OpenSession(key_a, "b", near[size], FAST))
        b.send(OpenSession(key_b, "a", far[size], FAST))
    for key_a, key_b in keys.values():
        a.await_state(key_a, State.UP)
        b.await_state(key_b, State.UP)
    return a, b, keys


def test_sessions_of_both_families_come_up_and_detect_silence(pair: tuple):
    a, b, keys = pair
    (ready,) = a.got(Ready)
    assert ready.version == VERSION
    assert "real-time" in ready.priority
    assert Path(f"/proc/{a.process.pid}/comm").read_text().strip() == "fared-bfd"
    for session in a.report().sessions:
        assert session.state is State.UP
        # RFC 5881 §4
        assert 49152 <= session.source_port <= 65535
    ports = [session.source_port for session in a.report().sessions]
    assert len(set(ports)) == 2
    b.process.kill()
    begun = time.monotonic()
    for key, _ in keys.values():
        a.await_state(key, State.DOWN)
    assert time.monotonic() - begun < SLOW


@pytest.mark.rfc("RFC 5880 §6.8.16")
def test_the_end_of_the_daemon_is_told_as_admin_down(pair: tuple):
    a, b, keys = pair
    b.ours.close()
    assert b.process.wait(30) == 0
    await_admin_down(a, keys)


def test_so_is_the_death_of_a_daemon_that_was_killed(
    veth: tuple[Netns, Netns], run: Callable[..., Process]
):
    a, b, keys = paired(veth, run, adopted=True)
    b.process.kill()
    b.process.wait()
    b.ours.close()
    await_admin_down(a, keys)


def await_admin_down(a: Process, keys: dict[int, tuple[SessionKey, SessionKey]]) -> None:
    for key, _ in keys.values():
        a.await_state(key, State.DOWN)
        changes = [change for change in a.got(StateChange) if change.key == key]
        assert changes[-1].remote_state is State.ADMIN_DOWN


def test_a_session_that_is_closed_sends_nothing_any_more(pair: tuple):
    a, b, keys = pair
    for key, _ in keys.values():
        a.send(CloseSession(key))
    for _, key in keys.values():
        b.await_state(key, State.DOWN)
    wait_for(lambda: not a.report().sessions, 30, "no session is left")


@pytest.mark.rfc("RFC 5881 §5")
@pytest.mark.parametrize(
    ("size", "host", "option"),
    [
        (4, "127.0.0.1", (socket.IPPROTO_IP, socket.IP_TTL)),
        (16, "::1", (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS)),
    ],
)
def test_the_kernel_refuses_packets_that_came_over_a_router(
    veth: tuple[Netns, Netns], size: int, host: str, option: tuple[int, int]
):
    """But for one in a thousand, so that a flood is told."""
    got: list[int] = []
    veth[0].ip("link", "set", "lo", "up")
    with inside(veth[0].name):
        receiver, far = receiving_socket(size), socket.socket(_FAMILIES[size], socket.SOCK_DGRAM)
    with receiver, far:
        for ttl in [254] * 20 * SAMPLE + [255]:
            far.setsockopt(*option, ttl)
            far.sendto(b"", (host, PORT))
            read_all(receiver, lambda _ifindex, _source, ttl, _data: got.append(ttl))
    assert got[-1] == 255
    assert 0 < got.count(254) == len(got) - 1 < SAMPLE


@pytest.mark.rfc("RFC 5881 §5")
def test_packets_that_came_over_a_router_are_refused(pair: tuple):
    a, b, _ = pair
    packet = encode_packet(ControlPacket(State.DOWN, 5, 0, 3, 50_000, 50_000))
    with b.netns.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 254)
        for _ in range(20 * SAMPLE):
            sock.sendto(packet, ("10.9.0.0", PORT))
        wait_for(lambda: a.report().discarded.get("ttl"), 30, "those that pass are counted")
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 255)
        sock.sendto(b"short", ("10.9.0.0", PORT))
        wait_for(lambda: a.report().discarded.get("truncated") == 1, 30, "it is counted")
    reasons = [trouble.fields["reason"] for trouble in a.got(Trouble)]
    assert reasons == ["ttl", "truncated"]
    assert all(session.state is State.UP for session in a.report().sessions)


def test_a_port_in_use_is_told_and_tried_again(
    veth: tuple[Netns, Netns], run: Callable[[Netns, str], Process]
):
    left, _ = veth
    index, near = addresses(left, "b", "10.9.0.0")
    other = left.socket(socket.AF_INET, socket.SOCK_DGRAM)
    other.bind(("", PORT))
    a = run(left, "b")
    a.send(OpenSession(SessionKey(index, bytes((10, 9, 0, 1))), "b", near[4], FAST))
    wait_for(lambda: a.got(Trouble), 30, "trouble")
    assert a.got(Trouble)[0].event == "bfd-socket"
    other.close()

    def bound() -> bool:
        return f":{PORT:04X} " in Path(f"/proc/{a.process.pid}/net/udp").read_text()

    wait_for(bound, 30, "the socket is open")


def test_requests_of_another_version_end_the_process(
    veth: tuple[Netns, Netns], run: Callable[[Netns, str], Process]
):
    a = run(veth[0], "b")
    a.send(Greeting(VERSION + 1))
    assert a.process.wait(30) == 0
    assert a.got(Trouble)[0].event == "bfd-version"


def test_messages_that_are_not_understood_are_told(
    veth: tuple[Netns, Netns], run: Callable[[Netns, str], Process]
):
    a = run(veth[0], "b")
    a.ours.send(b"\xc1 nonsense")
    a.send({"type": "Another"})
    wait_for(lambda: len(a.got(Trouble)) == 2, 30, "trouble")
    assert a.report().sessions == ()


def test_the_process_does_not_run_by_hand():
    done = subprocess.run(
        [sys.executable, "-m", "fared.kernel.bfdd"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "the fared daemon starts this program" in done.stderr


def test_the_process_loads_little():
    code = "import fared.kernel.bfdd.__main__, sys; print('\\n'.join(sys.modules))"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    unwanted = (
        "asyncio",
        "fared.daemon",
        "fared.protocols.ospf",
        "fared.protocols.isis",
        "fared.config",
        "numpy",
    )
    assert not [name for name in loaded if name.startswith((*unwanted, "_hashlib", "pyroute2"))]
