"""Which platform tells facts of links: the kernel, or SONiC where its databases are.

The code that reads Redis is loaded only where it is used.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fared.config.platform import Platform
from fared.daemon.loop.errors import DaemonError
from fared.daemon.loop.rate_limited import RateLimitedLog

if TYPE_CHECKING:
    from fared.sonic.platform import SonicPlatform

_WITHOUT = "redis-py is not installed (pip install 'fared[sonic]')"


def chosen_platform(
    section: Platform,
    log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
) -> SonicPlatform | None:
    """Return what is configured or found; None: the kernel. Raises DaemonError.

    ``auto`` takes SONiC where the file of its databases is. What is wrong there then is logged,
    and the kernel used.
    """
    if not section.is_sonic():
        return None
    try:
        platform = _sonic(section, log)
    except ValueError as error:
        if section.kind == "sonic":
            raise DaemonError(f"platform: {error}") from None
        log.warning("sonic-not-used", error=str(error), effect="facts of links are the kernel's")
        return None
    log.info("platform", kind=platform.name)
    return platform


def _sonic(section: Platform, log: Any) -> SonicPlatform:  # noqa: ANN401 - as above
    """Raises ValueError with the reason why it cannot be used."""
    if find_spec("redis") is None:
        raise ValueError(_WITHOUT)
    from fared.sonic.databases import read_databases  # noqa: PLC0415 - only on SONiC
    from fared.sonic.platform import SonicPlatform  # noqa: PLC0415 - only on SONiC

    try:
        databases = read_databases(section.databases, section.redis)
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"{section.databases}: {words}") from None
    return SonicPlatform(databases, log, RateLimitedLog(log.warning, "sonic-values-wrong"))
