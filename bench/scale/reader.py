"""Whoever reads a router all the time: a scrape, then each large document, without a pause.

``python bench/scale/reader.py SOCKET PORT`` runs until it is ended, in the daemon's namespace.
"""

from __future__ import annotations

import sys
import urllib.request

_DOCUMENTS = ("status", "interfaces", "neighbors", "database", "lsdb", "topology", "weights")


def main() -> None:
    """Read in turn."""
    from fared.management.api.client import ControlClient

    path, port = sys.argv[1:]
    client = ControlClient(path, 60)
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            answer.read()
        for document in _DOCUMENTS:
            client.request("show", document)


if __name__ == "__main__":
    main()
