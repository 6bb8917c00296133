"""``python -m fared.kernel.bfdd FD``: ``FD`` is the socket to the daemon, which alone starts it."""

from __future__ import annotations

import gc
import random
import signal
import socket
import sys
import time

from fared.kernel.bfdd.link import DaemonLink
from fared.kernel.bfdd.priority import raise_priority
from fared.kernel.bfdd.process import BfdProcess
from fared.runtime.children import end_with_parent, set_name

NAME = "fared-bfd"


def main() -> None:
    """Run until the daemon closes the socket."""
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit(f"{NAME}: the fared daemon starts this program")
    end_with_parent(signal.SIGCONT)  # neighbors are told AdminDown when the socket has closed
    sock = socket.socket(fileno=int(sys.argv[1]))
    # The daemon ends it by closing the socket: a service manager signals all processes, but the
    # sessions must outlive the last packets of the protocols.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    set_name(NAME)
    gc.collect()
    gc.freeze()
    BfdProcess(DaemonLink(sock), random.Random(), time.monotonic, raise_priority()).run()


if __name__ == "__main__":
    main()
