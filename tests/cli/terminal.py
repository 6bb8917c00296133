"""Runs a command on a pseudo-terminal, and reads what is on its screen."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOME = "\x1b[H"


class Terminal:
    """``fared-cli WORDS`` on a terminal of ``width`` x ``height``, which it controls.

    ``env``: what is added to its environment.
    """

    def __init__(self, *words, width=80, height=24, deadline=30.0, **env):
        self._end = time.monotonic() + deadline
        self.output = ""
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests may run in the background
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
                clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
                clean |= {"TERM": "xterm", "LANG": "C.UTF-8", **env}
                command = [sys.executable, "-m", "fared.management.cli.main", *words]
                os.execve(sys.executable, command, clean)
            os._exit(99)
        self.before = termios.tcgetattr(self._master)

    def type(self, keys):
        os.write(self._master, keys)

    def resize(self, width, height):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def screen(self):
        """The lines of the last whole page."""
        pages = self.output.split(HOME)
        return [ESCAPE.sub("", line).rstrip("\r") for line in pages[-1].split("\n")]

    def until(self, wanted, what):
        """Read until the screen fulfils a condition."""
        while not wanted(self.screen()):
            assert self._read(), f"the command ended without {what}:\n{self.output}"

    def readable(self, seconds):
        """Wait so long for something to read; return whether there is."""
        assert time.monotonic() < self._end, f"too late:\n{self.output}"
        return bool(select.select([self._master], [], [], seconds)[0])

    def _read(self):
        assert self.readable(max(self._end - time.monotonic(), 0)), f"too late:\n{self.output}"
        try:
            chunk = os.read(self._master, 65536)
        except OSError:  # EIO: the command has closed the terminal
            return False
        self.output += chunk.decode("utf-8", "replace")
        return bool(chunk)

    def ended(self):
        """Read to the end; return the exit code, and the settings that the terminal has then."""
        while self._read():
            pass
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status), termios.tcgetattr(self._master)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._master)
