"""One process ``fared-bfd`` whose daemon is the caller."""

from __future__ import annotations

import socket
import subprocess
import sys

import msgspec

from fared.extensions.lab.namespaces import Netns
from fared.protocols.bfd.messages import Answer, Ask, Greeting, Report, SessionKey, StateChange
from fared.protocols.bfd.packet import State
from fared.runtime import children
from tests.waiting import wait_for

_PARENT = """
import signal, subprocess, sys
subprocess.Popen(sys.argv[1:], close_fds=False)
signal.pause()
"""


class Process:
    """One process, with this test as its daemon.

    ``process`` is it, or with ``adopted`` the parent that has started it.
    """

    def __init__(self, netns: Netns, interface: str, *, adopted: bool = False) -> None:
        self.netns, self.interface = netns, interface
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.setblocking(False)
        command = children.python("fared.kernel.bfdd", str(theirs.fileno()))
        if adopted:
            command = (sys.executable, "-c", _PARENT, *command)
        with netns.entered():
            self.process = subprocess.Popen(command, pass_fds=(theirs.fileno(),))
        theirs.close()
        self.answers: list[Answer] = []
        self.send(Greeting())

    def send(self, request: object) -> None:
        self.ours.send(msgspec.msgpack.encode(request))

    def got(self, kind: type) -> list:
        """All answers of a type so far."""
        while True:
            try:
                data = self.ours.recv(1 << 16)
            except BlockingIOError:
                break
            if not data:
                break
            self.answers.append(msgspec.msgpack.decode(data, type=Answer))
        return [answer for answer in self.answers if isinstance(answer, kind)]

    def await_state(self, key: SessionKey, state: State) -> None:
        def reached() -> bool:
            changes = [change for change in self.got(StateChange) if change.key == key]
            return bool(changes) and changes[-1].state is state

        wait_for(reached, 30, lambda: f"{state.label}: {self.answers}")

    def report(self) -> Report:
        before = len(self.got(Report))
        self.send(Ask())
        wait_for(lambda: len(self.got(Report)) > before, 30, "a report")
        return self.got(Report)[-1]

    def close(self) -> None:
        self.ours.close()
        self.process.wait(30)
