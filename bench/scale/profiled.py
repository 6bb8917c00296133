"""fared under cProfile, switched on by SIGUSR1 and off by SIGUSR2, for ``scale --profile``.

``python bench/scale/profiled.py FILE -c CONFIGURATION`` writes the profile when it is switched off.
"""

from __future__ import annotations

import cProfile
import signal
import sys


def main() -> None:
    """Run the daemon with the arguments after the file's name."""
    file = sys.argv[1]
    sys.argv = ["fared", *sys.argv[2:]]
    profile = cProfile.Profile()

    def stop(*_: object) -> None:
        profile.disable()
        profile.dump_stats(file)

    signal.signal(signal.SIGUSR1, lambda *_: profile.enable())
    signal.signal(signal.SIGUSR2, stop)
    from fared.daemon.main import main as daemon

    daemon()


if __name__ == "__main__":
    main()
