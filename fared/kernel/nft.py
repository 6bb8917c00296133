"""A table of nftables that is ours: ``nft`` changes and lists it, and the kernel notifies changes.

``nft`` is run as a program, because PyPI has no maintained package of libnftables. One text is one
transaction: the kernel changes from the old state to the new one between two packets. A failure is
an NftError, and changes nothing. Notifications do not say who changed something: who changes the
table discards those that arrive meanwhile.
"""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import socket
import subprocess
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyroute2.netlink import NETLINK_ADD_MEMBERSHIP, SOL_NETLINK

from fared.kernel.netlink import attributes, messages, notifications, open_socket

_TIMEOUT = 10.0
_NOT_FOUND, _TOO_LONG = "No such file or directory", "Message too long"
_NETLINK_NETFILTER = 12
_NFNLGRP_NFTABLES = 7
_NFGENMSG = 4
_NFTA_TABLE = 1
"""The name of the table, in messages of every kind of object."""


class CounterValue(NamedTuple):
    """Packets and bytes of a counter."""

    packets: int
    size: int


class NftError(OSError):
    """nft is missing, failed, or refused a transaction; the text is its own."""


def find_nft() -> str | None:
    """Return the path of ``nft``."""
    return shutil.which("nft") or shutil.which("nft", path="/usr/sbin:/sbin")


class NftProgram:
    """Runs ``nft`` in the network namespace of the calling thread."""

    def __init__(self, program: str) -> None:
        self._program = program

    def execute(self, text: str) -> None:
        """Execute commands as one transaction. Raises NftError."""
        if text:
            _output(self._run(["-f", "-"], text))

    def list_table(self, family: str, name: str) -> list[dict[str, Any]]:
        """Return the objects of a table, none if it does not exist. Raises NftError."""
        done = self._run(["-j", "-n", "list", "table", family, name])
        if done.returncode and _NOT_FOUND in done.stderr:
            return []
        listed = _output(done)
        try:
            found: list[dict[str, Any]] = json.loads(listed)["nftables"]
        except (ValueError, KeyError, TypeError):
            raise NftError(errno.EPROTO, "nft printed no list") from None
        return found

    def _run(self, arguments: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [self._program, *arguments],
                input=text,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NftError(errno.ETIMEDOUT, f"no answer within {_TIMEOUT:g} s") from None
        except OSError as error:
            raise NftError(error.errno, f"{self._program}: {error.strerror}") from None


def _output(done: subprocess.CompletedProcess[str]) -> str:
    if not done.returncode:
        return done.stdout
    lines = done.stderr.splitlines()
    number = errno.EMSGSIZE if _TOO_LONG in done.stderr else errno.EINVAL
    raise NftError(number, lines[0].strip() if lines else f"status {done.returncode}")


def subscribe(protocol: int, *groups: int) -> socket.socket:
    """Return a socket of a netlink protocol that receives the notifications of groups."""
    sock = open_socket(protocol)
    sock.setblocking(False)
    for group in groups:
        sock.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)
    return sock


class NftWatch:
    """Calls ``changed`` when a table of this name may have changed."""

    def __init__(self, changed: Callable[[], None], table: str) -> None:
        self._changed = changed
        self._table = table.encode() + b"\0"
        self._socket = subscribe(_NETLINK_NETFILTER, _NFNLGRP_NFTABLES)

    def start(self) -> None:
        """Report from now on."""
        asyncio.get_running_loop().add_reader(self._socket, self._readable)

    def close(self) -> None:
        """Stop and close the socket."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def discard(self) -> bool:
        """Ignore what has changed until now; return whether anything had."""
        changed = False
        for received in notifications(self._socket):
            changed |= received is None
            for _, _, _, _, body in messages(received or b""):
                changed |= attributes(body, _NFGENMSG).get(_NFTA_TABLE) == self._table
        return changed

    def _readable(self) -> None:
        if self.discard():
            self._changed()
