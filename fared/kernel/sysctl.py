"""The kernel settings on which weighted forwarding stands or falls.

With the defaults of Linux all RoCE flows between two hosts take one link, every router of a
fabric in namespaces hashes alike, and a group rewrite costs 400 times more than it needs to.
``/proc/sys/net`` shows the network namespace of the process that opens it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

PROC_SYS = Path("/proc/sys")
_MEMBERSHIPS = 20


class SysctlMode(StrEnum):
    """What to do about a wrong value: correct it, report it, or not even look."""

    SET = "set"
    CHECK = "check"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A setting: its name with slashes, the value to write, which others will do, and why."""

    path: str
    value: str
    accepts: Callable[[str], bool]
    why: str

    @property
    def name(self) -> str:
        """As sysctl writes it; dots in interface names become slashes."""
        return self.path.translate(str.maketrans("/.", "./"))


@dataclass(frozen=True, slots=True)
class SysctlRow:
    """One line of the report.

    ``found``: before anything was done, None where the kernel has no such setting. ``action``:
    ``none`` (was right), ``set``, ``left`` (check only), ``failed``, ``missing``.
    """

    name: str
    wanted: str
    found: str | None
    action: str
    ok: bool
    why: str


def hash_seed(router_id: int) -> int:
    """A seed of its own for every router, never 0 (which means the one secret of the host).

    With equal seeds each tier picks from the flows that the tier below already sorted by the
    same hash: half of the links stay empty.
    """
    digest = hashlib.blake2b(router_id.to_bytes(4, "big"), digest_size=4).digest()
    return int.from_bytes(digest, "big") or 1


def wanted_sysctls(
    router_id: int, interfaces: Iterable[str] = (), *, ipv6: bool = False
) -> list[Wanted]:
    """The settings for a router, in the order they must be written.

    Forwarding first: switching it on resets others to the defaults of a router.
    """
    wanted = [
        Wanted("net/ipv4/ip_forward", "1", "1".__eq__, "a router forwards"),
        Wanted(
            "net/ipv4/fib_multipath_hash_policy",
            "1",
            lambda found: found in ("1", "3"),
            "ports must count, or all flows of two hosts share one link",
        ),
        Wanted(
            "net/ipv4/fib_multipath_hash_seed",
            str(hash_seed(router_id)),
            lambda found: found != "0",
            "routers in namespaces of one host must not hash alike",
        ),
        Wanted(
            "net/ipv4/nexthop_compat_mode",
            "0",
            "0".__eq__,
            "else a group rewrite also announces every route behind it",
        ),
        Wanted(
            "net/ipv4/igmp_max_memberships",
            str(_MEMBERSHIPS),
            lambda found: int(found) >= _MEMBERSHIPS,
            "OSPF joins multicast groups",
        ),
    ]
    if ipv6:
        wanted += [
            Wanted("net/ipv6/conf/all/forwarding", "1", "1".__eq__, "a router forwards"),
            Wanted(
                "net/ipv6/fib_multipath_hash_policy",
                "1",
                lambda found: found in ("1", "3"),
                "ports must count, or all flows of two hosts share one link",
            ),
        ]
    return wanted + [
        Wanted(
            # In a path an interface name may hold dots, which sysctl(8) writes as slashes.
            f"net/ipv4/conf/{interface}/rp_filter",
            "2",
            lambda found: found != "1",
            "strict reverse path checks drop what arrives by another link of the bundle",
        )
        for interface in ("all", "default", *interfaces)
    ]


def apply_sysctls(
    mode: SysctlMode, wanted: Iterable[Wanted], root: Path = PROC_SYS
) -> list[SysctlRow]:
    """Check the settings and, in mode ``set``, correct them; one row each, none when ignoring."""
    if mode is SysctlMode.IGNORE:
        return []
    return [_apply(mode, setting, root / setting.path) for setting in wanted]


def _apply(mode: SysctlMode, setting: Wanted, path: Path) -> SysctlRow:
    found = _read(path)
    if found is None:
        action, ok = "missing", False
    elif _accepts(setting, found):
        action, ok = "none", True
    elif mode is SysctlMode.CHECK:
        action, ok = "left", False
    else:
        ok = _write(path, setting.value) and _accepts(setting, _read(path) or "")
        action = "set" if ok else "failed"
    return SysctlRow(setting.name, setting.value, found, action, ok, setting.why)


def _accepts(setting: Wanted, found: str) -> bool:
    try:
        return setting.accepts(found)
    except ValueError:
        return False


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def _write(path: Path, value: str) -> bool:
    try:
        path.write_text(value + "\n", encoding="ascii")
    except OSError:
        return False
    return True
