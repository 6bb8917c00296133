"""Replays recordings in this process: prints as JSON what each has come to, by its directory.

Arguments: directories. Hashes of text differ from those of the process that recorded."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fared.management.recording.digests import databases_text, routes_text
from fared.management.recording.player import play


def main() -> None:
    found = {}
    for directory in map(Path, sys.argv[1:]):
        played = play(directory)
        difference = played.difference
        found[directory.name] = {
            "texts": [
                databases_text(played.router, played.now),
                routes_text(played.router),
            ],
            "difference": None if difference is None else repr(difference)[:2000],
            "confirmed": played.confirmed,
            "new_router": played.new_router,
            "calls": played.call,
        }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
