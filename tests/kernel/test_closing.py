"""A router with hundreds of interfaces ends at once."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fared.kernel.closing import close_together
from fared.kernel.isis_socket import IsisSockets


class Waiting:
    """A socket that the kernel closes when others are being closed, too."""

    def __init__(self, others: threading.Barrier, error: OSError | None = None) -> None:
        self.closed = False
        self._others, self._error = others, error

    def fileno(self) -> int:
        return id(self)

    def close(self) -> None:
        self._others.wait(10.0)
        self.closed = True
        if self._error is not None:
            raise self._error


class Watched:
    """Readers that know which sockets they watch."""

    def __init__(self) -> None:
        self.sockets: list[Waiting] = []

    def add_reader(self, sock: Waiting, *_: object) -> None:
        self.sockets.append(sock)

    def remove_reader(self, sock: Waiting) -> None:
        assert not sock.closed
        self.sockets.remove(sock)


@pytest.mark.parametrize("number", [1, 8, 64])
def test_sockets_wait_for_the_kernel_at_the_same_time(number):
    barrier = threading.Barrier(number)
    sockets = [Waiting(barrier) for _ in range(number)]
    close_together(sockets)
    assert all(sock.closed for sock in sockets)


def test_an_error_of_one_does_not_keep_the_others_open():
    barrier = threading.Barrier(8)
    sockets = [Waiting(barrier, OSError("lost") if at % 3 else None) for at in range(16)]
    close_together(sockets)
    assert all(sock.closed for sock in sockets)


def test_nothing_to_close_takes_no_thread():
    before = threading.active_count()
    close_together([])
    assert threading.active_count() == before


async def test_the_sockets_of_all_interfaces_are_closed_together(monkeypatch):
    watched, barrier = Watched(), threading.Barrier(40)
    made = IsisSockets(lambda *_: None, asyncio.get_running_loop(), readers=watched)
    monkeypatch.setattr(made, "_open", lambda _: (Waiting(barrier), Waiting(barrier)))
    for ifindex in range(1, 21):
        made.open(ifindex)
    opened = list(watched.sockets)
    made.close_all()
    assert len(opened) == 40
    assert all(sock.closed for sock in opened)
    assert not watched.sockets
    assert not any(ifindex in made for ifindex in range(1, 21))
