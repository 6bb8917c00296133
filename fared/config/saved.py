"""The process that reads and checks a configuration file for ``show config --saved``.

A file of 8,000 interfaces takes a second of an interpreter, and whoever may read the configuration
may ask for it again and again. Standard output has the configuration as JSON, with all defaults.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from fared.config.errors import ConfigErrors
from fared.config.load import load
from fared.runtime.child import end_with_parent, give_way


def main() -> int:
    """Read the file that is named; the exit code is 1, with its errors on stderr, if it has any."""
    end_with_parent()
    give_way()
    try:
        config = load(Path(sys.argv[1]))
    except (ConfigErrors, OSError) as error:
        sys.stderr.write(str(error))
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(config.document()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
