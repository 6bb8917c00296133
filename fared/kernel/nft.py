"""A table of nftables that is ours: ``nft`` changes and lists it, and the kernel notifies changes.

``nft`` is run as a program, because PyPI has no maintained package of libnftables. One text is one
transaction: the kernel changes from the old state to the new one between two packets. A failure is
an NftError, and changes nothing. Notifications have the port of the socket that changed something,
which is the process id of ``nft``: those of our own changes are ignored, and those of others are
not, however close they are.
"""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fared.kernel.netlink import attributes, messages, notifications
from fared.kernel.subscription import subscribe

_TIMEOUT = 10.0
_MOST_PORTS = 64
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
        self.ports: tuple[int, ...] = ()
        """Netlink ports of what has run since the last notifications were read (``NftWatch``)."""

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
        command, pipe = [self._program, *arguments], subprocess.PIPE
        try:
            with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as nft:
                # before it has read anything, and so before it changes anything
                self.ports = (*self.ports, nft.pid)[-_MOST_PORTS:]
                try:
                    output, errors = nft.communicate(text, timeout=_TIMEOUT)
                except subprocess.TimeoutExpired:
                    nft.kill()
                    raise NftError(errno.ETIMEDOUT, f"no answer within {_TIMEOUT:g} s") from None
        except OSError as error:
            if isinstance(error, NftError):
                raise
            raise NftError(error.errno, f"{self._program}: {error.strerror}") from None
        return subprocess.CompletedProcess(command, nft.returncode, output, errors)


def _output(done: subprocess.CompletedProcess[str]) -> str:
    if not done.returncode:
        return done.stdout
    lines = done.stderr.splitlines()
    number = errno.EMSGSIZE if _TOO_LONG in done.stderr else errno.EINVAL
    raise NftError(number, lines[0].strip() if lines else f"status {done.returncode}")


class NftWatch:
    """Calls ``changed`` when others than ``program`` may have changed a table of this name."""

    def __init__(self, changed: Callable[[], None], table: str, program: NftProgram) -> None:
        self._changed = changed
        self._program = program
        self._table = table.encode() + b"\0"
        self._socket = subscribe((_NFNLGRP_NFTABLES,), protocol=_NETLINK_NETFILTER)

    def start(self) -> None:
        """Report from now on."""
        asyncio.get_running_loop().add_reader(self._socket, self._report)

    def close(self) -> None:
        """Stop and close the socket."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def settle(self) -> None:
        """Report what has changed until now; what ``program`` is told to do next is another change.

        Notifications precede the end of ``nft``. Its process id may then be another program's.
        """
        self._report()
        self._program.ports = ()

    def _report(self) -> None:
        changed, own = False, self._program.ports
        for received in notifications(self._socket):
            changed |= received is None
            for _, _, _, port, body in messages(received or b""):
                table = attributes(body, _NFGENMSG).get(_NFTA_TABLE)
                changed |= table == self._table and port not in own
        if changed:
            self._changed()
