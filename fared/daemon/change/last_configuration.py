"""The configuration that ran last, in place of a file that is refused.

``systemctl restart`` ends the running router before anybody looks at the file. Without this, an
edit that is wrong would cost all routes, and the service manager would start a router that cannot
start. Used with ``--fallback``, as the service unit does.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from fared.config import ConfigErrors, load_runnable
from fared.config.load import Loaded
from fared.daemon.change.history import History
from fared.runtime import state_directory


class _Silent:
    """A log for what the daemon will log again."""

    def warning(self, event: str, **fields: object) -> None:
        """Say nothing."""


def last_configuration(path: str, refused: ConfigErrors) -> Loaded | None:
    """Return what ran last, with the errors of the file; None: nothing is known that can run.

    The state directory is that of the service manager: the file that would name it is refused.
    Configurations that were never confirmed do not count.
    """
    history = History(str(state_directory.of_this_machine()), _Silent())
    try:
        entries = history.entries()
    except OSError:  # no descriptors
        return None
    for entry in entries:
        if entry.state != "final":
            continue
        try:
            found = load_runnable(Path(path), history.text(entry))
        except (ConfigErrors, OSError, ValueError):  # of another version, or damaged
            continue
        return replace(found, refused=str(refused))
    return None
