"""What an operator has taken out of service, until he puts it back: the router, or links.

The file ``STATE/drained.json`` survives restarts. A drained link keeps its adjacency and its
metric: only the capacity that is advertised falls, to a part of it or, with share 0, to the least
that others accept, so that they use it only where there is no other path.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from fared.core.json_text import decode_json
from fared.daemon.loop.files import read_small, replace_file

_NAME: Final = "drained.json"
_MOST_BYTES: Final = 1 << 20
MOST_LINKS: Final = 4096


class Drain(msgspec.Struct, frozen=True):
    """Who has drained something, when (Unix time), and why; ``share``: what is left of a link."""

    user: str
    at: float
    reason: str
    share: float = 0.0


class _Drained(msgspec.Struct):
    router: Drain | None = None
    links: dict[str, Drain] = msgspec.field(default_factory=dict)


class Drains:
    """The drained router and links. ``log`` is structlog's, which has no public type."""

    def __init__(self, directory: Path | str, log: Any) -> None:  # noqa: ANN401
        self._file = Path(directory) / _NAME
        self._log = log
        self._drained = self._read()

    @property
    def router(self) -> Drain | None:
        """The drain of the whole router; None: it is in service."""
        return self._drained.router

    @property
    def links(self) -> Mapping[str, Drain]:
        """The drained links, by interface."""
        return self._drained.links

    def set_router(self, drain: Drain | None) -> str | None:
        """Drain the router, or (None) put it back into service.

        Returns why a restart will undo that; None: it will not.
        """
        self._drained.router = drain
        return self._write()

    def set_link(self, name: str, drain: Drain | None) -> str | None:
        """The same for a link. Raises ValueError: too many."""
        if drain is None:
            self._drained.links.pop(name, None)
        elif len(self._drained.links) >= MOST_LINKS and name not in self._drained.links:
            raise ValueError(f"{MOST_LINKS} links are drained already")
        else:
            self._drained.links[name] = drain
        return self._write()

    def _read(self) -> _Drained:
        try:
            found = decode_json(read_small(self._file, _MOST_BYTES), _Drained)
        except FileNotFoundError:
            return _Drained()
        except (OSError, ValueError) as error:
            self._log.warning(
                "drained-unreadable", file=str(self._file), error=str(error), effect="in service"
            )
            return _Drained()
        for name, drain in {"router": found.router, **found.links}.items():
            if drain is not None:
                age = round(time.time() - drain.at)
                self._log.info(
                    "still-drained", what=name, user=drain.user, reason=drain.reason, seconds=age
                )
        shares = {name: drain for name, drain in found.links.items() if 0.0 <= drain.share < 1.0}
        return _Drained(found.router, shares)

    def _write(self) -> str | None:
        """Return why the file could not be written; None: it was."""
        try:
            replace_file(self._file, msgspec.json.encode(self._drained) + b"\n")
        except OSError as error:
            reason = error.strerror or str(error)
            effect = "a restart undoes the last change"
            self._log.warning("drained-not-kept", file=str(self._file), error=reason, effect=effect)
            return f"{self._file}: {reason}"
        return None
