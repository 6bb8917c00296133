"""``python -m fared.kernel.bfdd FD``: ``FD`` is the socket to the daemon, which alone starts it."""

from __future__ import annotations

import gc
import random
import signal
import time

from fared.kernel.bfdd.link import DaemonLink
from fared.kernel.bfdd.priority import raise_priority
from fared.kernel.bfdd.process import BfdProcess
from fared.runtime.child import serve_daemon

NAME = "fared-bfd"


def main() -> None:
    """Run until the daemon closes the socket."""
    # Sessions outlive the last packets of the protocols; when the socket has closed, neighbors are
    # told AdminDown.
    sock = serve_daemon(NAME, ends_by=signal.SIGCONT)
    gc.collect()
    gc.freeze()
    BfdProcess(DaemonLink(sock), random.Random(), time.monotonic, raise_priority()).run()


if __name__ == "__main__":
    main()
