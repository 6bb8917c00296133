"""The database that an offline command computes from: what ``--lsdb`` names."""

from __future__ import annotations

import sys
from pathlib import Path

from fared.extensions.offline.file import read_database
from fared.extensions.offline.world import FileError, SavedDatabase
from fared.management.cli.session import Failure

DATABASES = (
    "'fared-cli show lsdb --json > FILE' on a router writes a database, 'fared-cli lsdb"
    " from-pcap' makes one from a capture, and FRR's JSON is read (docs/offline.md)"
)
"""What to do about a file that is none."""


def load_database(source: str) -> SavedDatabase:
    """Read a saved database, ``-`` for standard input. Raises Failure."""
    name = "standard input" if source == "-" else source
    try:
        text = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        return read_database(text)
    except OSError as error:
        raise Failure(f"{name}: {error.strerror or error}", DATABASES) from error
    except FileError as error:
        raise Failure(f"{name}: {error}", DATABASES) from error
