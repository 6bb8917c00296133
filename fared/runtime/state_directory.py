"""The state directory: what a restart needs, the key of recordings, the configurations that ran.

The configuration names it, and the service manager, which also makes it (``StateDirectory=`` of
systemd.exec(5)). Who has no configuration, or one that is refused, finds it here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

DEFAULT: Final = "/var/lib/fared"
"""If neither configuration nor service manager name another."""


def of_this_machine() -> Path:
    """Return the state directory of the service, or the default."""
    return Path(os.environ.get("STATE_DIRECTORY", DEFAULT))
