"""Network namespaces by name, compatible with ``ip netns``, and operations inside them.

A process that is started, or a socket that is opened, while a thread is in a namespace belongs to
the namespace permanently. So the lab enters, opens and leaves, without helper processes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fared.extensions.lab import syscalls
from fared.extensions.lab.errors import LabError

DIRECTORY = Path("/run/netns")
_TOOL_DEADLINE = 30.0


def _prepare_directory() -> None:
    """Make the directory a shared mount of its own, as the first ``ip netns add`` does.

    Otherwise ``ip`` would bind the directory over itself later, and the names mounted before would
    be hidden below it, where they cannot be unmounted or removed.
    """
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    path, shared = str(DIRECTORY), syscalls.MS_SHARED | syscalls.MS_REC
    try:
        syscalls.mount("", path, "none", shared)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        syscalls.mount(path, path, "none", syscalls.MS_BIND | syscalls.MS_REC)
        syscalls.mount("", path, "none", shared)


@dataclass(frozen=True)
class Netns:
    """One named network namespace."""

    name: str

    @classmethod
    def create(cls, name: str) -> Netns:
        """Create the namespace, with its loopback up. Raises LabError if the name is taken."""
        _prepare_directory()
        made = cls(name)
        try:
            made.path.touch(0o444, exist_ok=False)
        except FileExistsError:
            raise LabError(f"network namespace {name} exists already") from None
        with _returning():
            syscalls.unshare(syscalls.CLONE_NEWNET)
            syscalls.mount("/proc/self/ns/net", str(made.path), "", syscalls.MS_BIND)
        made.ip("link", "set", "dev", "lo", "up")
        return made

    @property
    def path(self) -> Path:
        """The file that keeps the namespace, and by which it is entered."""
        return DIRECTORY / self.name

    def delete(self) -> None:
        """Remove its name; the kernel frees the namespace with its last process."""
        with contextlib.suppress(OSError):
            syscalls.unmount(str(self.path))
        self.path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Move the calling thread into the namespace; do not await or start threads inside."""
        with _returning():
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                syscalls.setns(descriptor, syscalls.CLONE_NEWNET)
            finally:
                os.close(descriptor)
            yield

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """Open a socket in the namespace."""
        with self.entered():
            return socket.socket(family, kind | socket.SOCK_CLOEXEC, protocol)

    def run(
        self, arguments: Sequence[str], *, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a short program to its end; with ``check`` a failure raises LabError."""
        try:
            with self.entered():
                done = subprocess.run(
                    arguments,
                    input=stdin,
                    capture_output=True,
                    text=True,
                    timeout=_TOOL_DEADLINE,
                    check=False,
                )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LabError(f"{self.name}: {' '.join(arguments)}: {error}") from error
        if check and done.returncode != 0:
            said = (done.stderr or done.stdout).strip()
            raise LabError(f"{self.name}: {' '.join(arguments)}: {said or done.returncode}")
        return done

    def ip(self, *arguments: str) -> str:
        """Run ``ip`` in the namespace; return its output."""
        return self.run(["ip", *arguments]).stdout

    def batch(self, tool: str, lines: Iterable[str], *options: str) -> None:
        """Run many commands in one ``ip`` or ``tc`` process, with the options of all."""
        text = "\n".join(lines)
        if text:
            self.run([tool, *options, "-batch", "-"], stdin=text + "\n")

    def sysctl(self, key: str, value: object) -> None:
        """Set a network sysctl of the namespace, ``ipv4.ip_forward`` for example.

        As with sysctl(8) the separator may be ``/``, for interfaces with a dot in their name.
        """
        with self.entered():
            try:
                parts = key.split("/" if "/" in key else ".")
                Path("/proc/sys/net", *parts).write_text(str(value), "ascii")
            except OSError as error:
                raise LabError(f"{self.name}: net.{key}={value}: {error.strerror}") from error

    def start(self, arguments: Sequence[str], output: Path) -> subprocess.Popen[bytes]:
        """Start a program that keeps running; its output is appended to a file.

        It gets its own session, so that Ctrl-C reaches only the lab, which stops the program.
        """
        with self.entered(), output.open("ab") as sink:
            return subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


class CurrentNetns(Netns):
    """The process's present namespace, with a name for messages."""

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Stay in the present namespace."""
        yield


@contextlib.contextmanager
def _returning() -> Iterator[None]:
    """Return the calling thread to its present network namespace at the end."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        try:
            syscalls.setns(home, syscalls.CLONE_NEWNET)
        finally:
            os.close(home)
