"""Runs ``nft``, which changes and lists the table of sprayed packets (``nft_table``).

It is run as a program, because PyPI has no maintained package of libnftables. A list of operations
is one transaction: the kernel changes from the old state to the new one between two packets. A
failure is an NftError, and changes nothing.

A transaction is one message, which must fit the buffer of nft's socket. In a user namespace nft
may not enlarge it (SO_SNDBUFFORCE, socket(7)), and 200 KB hold some 2,500 packets of rounds. Larger
changes then take several transactions.
"""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any

from fared.fib.spray import SprayOperation, SprayState
from fared.kernel.nft_listing import Counted, parse
from fared.kernel.nft_table import TABLE, Transaction

_TIMEOUT = 10.0
_NOT_FOUND, _TOO_LONG = "No such file or directory", "Message too long"
_PIECE = 30_000
"""Characters; a message for the kernel is up to four times as long."""


class NftError(OSError):
    """nft is missing, failed, or refused a transaction; the text is its own."""


def find_nft() -> str | None:
    """Return the path of ``nft``."""
    return shutil.which("nft") or shutil.which("nft", path="/usr/sbin:/sbin")


class Nft:
    """Runs ``nft`` in the network namespace of the calling thread."""

    def __init__(self, program: str) -> None:
        self._program = program

    def apply(self, operations: Iterable[SprayOperation]) -> None:
        """Execute operations as one transaction if it is not too long. Raises NftError."""
        transaction = Transaction(operations)
        if not transaction.text:
            return
        done = self._run(["-f", "-"], transaction.text)
        if done.returncode and _TOO_LONG in done.stderr:
            for piece in transaction.pieces(_PIECE):
                _output(self._run(["-f", "-"], piece))
        else:
            _output(done)

    def read(self) -> tuple[SprayState, dict[int, Counted]]:
        """Return the content of the table, and the packets of each mark. Raises NftError."""
        return parse(self._listed())

    def _listed(self) -> list[dict[str, Any]]:
        done = self._run(["-j", "-n", "list", "table", "inet", TABLE])
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
    raise NftError(errno.EINVAL, lines[0].strip() if lines else f"status {done.returncode}")
