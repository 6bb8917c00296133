"""The tar of ``tech-support``: members from programs that show the kernel, versions, recordings.

A program that is missing, fails or hangs costs its own member, which then has the reason in place
of the output. The file appears whole or not at all, and only its owner may read it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import socket
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import fared

_PATIENCE: Final = 30.0
"""Seconds for one program."""
_PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "ip-link.json": ("ip", "-d", "-s", "-j", "link"),
    "ip-address.json": ("ip", "-d", "-j", "address"),
    "ip-nexthop.json": ("ip", "-d", "-s", "-j", "nexthop"),
    "ip-route-ipv4.json": ("ip", "-4", "-d", "-s", "-j", "route", "show", "table", "all"),
    "ip-route-ipv6.json": ("ip", "-6", "-d", "-s", "-j", "route", "show", "table", "all"),
    "ip-rule-ipv4.json": ("ip", "-4", "-d", "-s", "-j", "rule"),
    "ip-rule-ipv6.json": ("ip", "-6", "-d", "-s", "-j", "rule"),
    "ip-neigh-ipv4.json": ("ip", "-4", "-d", "-s", "-j", "neigh"),
    "ip-neigh-ipv6.json": ("ip", "-6", "-d", "-s", "-j", "neigh"),
    "nft-ruleset.json": ("nft", "-j", "list", "ruleset"),
    "nft-ruleset.txt": ("nft", "list", "ruleset"),
}
_VERSIONS: Final = (("ip", "-V"), ("nft", "--version"), ("systemctl", "--version"))
_LIBRARIES: Final = (
    "click",
    "h11",
    "msgspec",
    "numpy",
    "prometheus-client",
    "pyroute2",
    "pyyaml",
    "rich",
    "structlog",
    "uvicorn",
)
_CREDENTIALS: Final = struct.Struct("iII")
_MAX_PART: Final = 256 << 20
"""Bytes of one file of a recording."""


class Archive:
    """A tar that is written for a block, and takes its name at the end; mode 0600.

    All members are in one directory ``top``. Raises OSError.
    """

    def __init__(self, path: Path, top: str) -> None:
        self._path = path
        self._top = top

    def __enter__(self) -> Self:
        # mkstemp: mode 0600, and no file or link of others is followed
        descriptor, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        self._unfinished = Path(name)
        self._file = os.fdopen(descriptor, "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w:gz")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: object, __: TracebackType | None
    ) -> None:
        try:
            with self._file:
                self._tar.close()
                self._file.flush()
                os.fsync(self._file.fileno())
            if kind is None:
                self._unfinished.replace(self._path)
        finally:
            self._unfinished.unlink(missing_ok=True)

    def add(self, name: str, content: bytes) -> None:
        """Add a member."""
        member = tarfile.TarInfo(f"{self._top}/{name}")
        member.size, member.mode, member.mtime = len(content), 0o600, int(time.time())
        self._tar.addfile(member, io.BytesIO(content))

    def add_json(self, name: str, document: object) -> None:
        """Add a document."""
        self.add(name, json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n")

    def add_lines(self, name: str, documents: Iterable[object]) -> None:
        """Add a document in each line."""
        self.add(name, b"".join(json.dumps(d).encode() + b"\n" for d in documents))

    def add_recording(self, directory: Path) -> None:
        """Add the files of a recording; one that vanishes meanwhile is left out."""
        for file in _files_below(directory):
            with contextlib.suppress(FileNotFoundError):
                self.add(f"recording/{file.relative_to(directory)}", _read(file))


def _files_below(directory: Path) -> Iterator[Path]:
    """All regular files, in order; what a link leads to is not part of it."""
    for folder, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            file = Path(folder, name)
            if not file.is_symlink() and file.is_file():
                yield file


def _read(file: Path) -> bytes:
    """Read a file that may grow meanwhile. Raises OSError."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as source:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError
        return source.read(_MAX_PART)


def kernel_members(path: str) -> Iterator[tuple[str, bytes]]:
    """Yield what programs tell of the kernel, in the network namespace of this process.

    ``path``: the control socket, whose daemon may be in another namespace; a member tells.
    """
    failed: dict[str, str] = {}
    for name, program in _PROGRAMS.items():
        output, reason = _output(program)
        if reason:
            failed[name] = f"{' '.join(program)}: {reason}"
        else:
            yield f"kernel/{name}", output
    facts = {"failed": failed, "network_namespace_of_the_daemon": _namespace_of(path)}
    yield "kernel/about.json", json.dumps(facts, indent=1).encode() + b"\n"


def version_members() -> Iterator[tuple[str, bytes]]:
    """Yield the versions of fared, of what it uses, and of the system."""
    versions: dict[str, Any] = {
        "fared": fared.__version__,
        "python": sys.version,
        "kernel": " ".join(platform.uname()),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "programs": {program[0]: _first_line(program) for program in _VERSIONS},
    }
    with contextlib.suppress(OSError):
        versions["system"] = platform.freedesktop_os_release()
    yield "versions.json", json.dumps(versions, indent=1).encode() + b"\n"


def _output(program: tuple[str, ...]) -> tuple[bytes, str]:
    """Run a program; return its output, or why there is none."""
    try:
        done = subprocess.run(program, capture_output=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return b"", f"no end within {_PATIENCE:g} s"
    except OSError as error:
        return b"", error.strerror or str(error)
    if done.returncode:
        return b"", done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}"
    return done.stdout, ""


def _first_line(program: tuple[str, ...]) -> str:
    output, reason = _output(program)
    return next(iter(output.decode(errors="replace").splitlines()), reason)


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _namespace_of(path: str) -> str:
    """Tell whether the daemon at a control socket is in our network namespace."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1.0)
            connection.connect(path)
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, _, _ = _CREDENTIALS.unpack(raw)
        same = Path(f"/proc/{pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink()
    except OSError:
        return "unknown"
    return "this one" if same else "another: its routes are not in this file"
