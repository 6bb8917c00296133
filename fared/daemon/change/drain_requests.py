"""Arguments and answers of ``drain`` and ``undrain``."""

from __future__ import annotations

from typing import Final, NamedTuple

from fared.daemon.change.drains import Drain
from fared.management.api.errors import CommandError
from fared.management.api.respond import Json
from fared.management.api.views.context import Derating

MOST_REASON: Final = 200
"""Characters."""
_MOST_NAME: Final = 15


class DrainRequest(NamedTuple):
    """What to drain: the router, or (``interface``) a link, of which ``share`` is left."""

    interface: str | None
    share: float
    reason: str


def drain_request(args: Json) -> DrainRequest:
    """Read the arguments. Raises CommandError."""
    interface, share, reason = args.get("interface"), args.get("share"), args.get("reason") or ""
    if interface is not None and (
        not isinstance(interface, str) or not 0 < len(interface) <= _MOST_NAME
    ):
        raise CommandError("bad-argument", "interface must be the name of an interface")
    if not isinstance(reason, str) or len(reason) > MOST_REASON or not reason.isprintable():
        text = f"reason must be one line of at most {MOST_REASON} printable characters"
        raise CommandError("bad-argument", text)
    if share is None:
        return DrainRequest(interface, 0.0, reason)
    if interface is None:
        raise CommandError("bad-argument", "share is for an interface")
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
        raise CommandError("bad-argument", "share must be 0 to less than 1")
    return DrainRequest(interface, float(share), reason)


def drained_answer(interface: str | None, drain: Drain | None, lost: str | None) -> Json:
    """Answer of both commands; ``lost``: why a restart will undo it."""
    return {
        "format": "fared-drain/1",
        "drained": drain is not None,
        "interface": interface,
        "share": None if drain is None or interface is None else drain.share,
        "reason": "" if drain is None else drain.reason,
        "not_kept": lost,
    }


def derating(drain: Drain) -> Derating:
    """Return a drain as views show it."""
    return Derating(drain.user, drain.share, drain.at, drain.reason)
