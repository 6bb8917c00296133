"""Runs ``nft``, which changes and lists tables of nftables.

It is run as a program, because PyPI has no maintained package of libnftables. One text is one
transaction: the kernel changes from the old state to the new one between two packets. A failure is
an NftError, and changes nothing.
"""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

_TIMEOUT = 10.0
_NOT_FOUND, _TOO_LONG = "No such file or directory", "Message too long"


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
