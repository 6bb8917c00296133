"""The ``fared-ina`` command. Exit codes: 0 ended by a signal, 1 could not run, 2 bad usage."""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import re
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import structlog
from sdnotify import SystemdNotifier

from fared import __version__
from fared.extensions.ina.fields import LEAST_PORT
from fared.extensions.ina.inad.process import InaProcess, Settings
from fared.extensions.ina.slots.packet import DEFAULT_PORT
from fared.runtime import journal
from fared.runtime.log_output import LogOutput
from fared.runtime.sockets import INA_SOCKET

_BYTES = re.compile(r"([0-9]+)([KMG]?)")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3}
_MOST_JOBS = 4096


def main() -> None:
    """Sum the packets of in-network aggregation, for jobs that arrive over a unix socket."""
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):  # they mean nothing here
        signal.signal(number, signal.SIG_IGN)
    options = parser().parse_args()
    output = LogOutput(sys.stderr, _lost)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
            *([journal.prefix_rendered] if journal.reads(sys.stderr) else []),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=output.file),
    )
    settings = Settings(
        options.address,
        options.port,
        options.socket,
        options.memory,
        options.max_jobs,
        options.bier,
    )
    try:
        process = InaProcess(settings, time.monotonic)
    except OSError as error:
        where = f"{settings.address}:{settings.port}, {settings.socket}"
        journal.tell(f"fared-ina: cannot listen ({where}): {error.strerror or error}", "error")
        sys.exit(1)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.stop())
    if "NOTIFY_SOCKET" in os.environ:
        SystemdNotifier().notify("READY=1")
    process.run()


def _lost(count: int) -> str:
    """What is written in place of lines that stderr's reader was too slow for."""
    event = "log-lines-lost"
    fields = {"count": count, "event": event, "level": "warning"}
    at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    line = json.dumps({**fields, "timestamp": at})
    return (journal.prefixed(line, "warning") if journal.reads(sys.stderr) else line) + "\n"


def parser() -> argparse.ArgumentParser:
    """Return the options, which the man page lists too."""
    made = argparse.ArgumentParser(prog="fared-ina", description=main.__doc__, allow_abbrev=False)
    made.add_argument(
        "--address",
        required=True,
        type=_address,
        help="IPv4 address of this router, the router id as a rule, from which it sends",
    )
    made.add_argument(
        "--port",
        type=int,
        default=DEFAULT_PORT,
        choices=range(LEAST_PORT, 1 << 16),
        metavar="PORT",
        help="UDP and TCP port, the same at all routers (default: %(default)s)",
    )
    made.add_argument(
        "--socket",
        type=Path,
        default=Path(INA_SOCKET),
        metavar="PATH",
        help="unix socket for jobs, mode 0660 (default: %(default)s)",
    )
    made.add_argument(
        "--memory",
        type=_bytes,
        default=64 << 20,
        metavar="BYTES",
        help="most memory for the slots of all jobs, with K, M or G (default: 64M)",
    )
    made.add_argument(
        "--max-jobs",
        type=int,
        default=16,
        choices=range(1, _MOST_JOBS + 1),
        metavar="N",
        help="most jobs at a time (default: %(default)s)",
    )
    made.add_argument(
        "--bier",
        action="store_true",
        help="send results by BIER in jobs that have it; takes CAP_NET_RAW",
    )
    made.add_argument("--version", action="version", version=f"fared-ina, version {__version__}")
    return made


def _address(text: str) -> str:
    return str(ipaddress.IPv4Address(text))


def _bytes(text: str) -> int:
    match = _BYTES.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes such as 64M")
    return int(match[1]) << 10 * _POWERS[match[2]]


if __name__ == "__main__":
    main()
