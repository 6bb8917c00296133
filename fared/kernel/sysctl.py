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
    router_id: int,
    interfaces: Iterable[str] = (),
    *,
    ipv6: bool = False,
    unnumbered: bool = False,
) -> list[Wanted]:
    """The settings for a router, in the order they must be written.

    ``ipv6``: IPv6 routes are written, or IPv4 routes over IPv6 next hops. ``unnumbered``: some
    ``interfaces`` carry IPv4 without an IPv4 address of their own.
    """
    names = tuple(interfaces)
    return [
        *_ipv4(router_id),
        *(_ipv6(names) if ipv6 else ()),
        *_reverse_path(names, unnumbered=unnumbered),
    ]


def _ipv4(router_id: int) -> list[Wanted]:
    """Forwarding first: switching it on resets others to the defaults of a router.

    The seed serves both families.
    """
    return [
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


def _ipv6(interfaces: Iterable[str]) -> list[Wanted]:
    """As for IPv4.

    Duplicate address detection (accept_dad) stays as the operator has it: an interface that was
    taken down has its link-local address back 1 to 2 s after it came up, and only a lost carrier
    leaves it. Optimistic addresses are no way out, Linux knows them on hosts only.
    """
    wanted = [
        Wanted("net/ipv6/conf/all/forwarding", "1", "1".__eq__, "a router forwards"),
        Wanted(
            "net/ipv6/fib_multipath_hash_policy",
            "1",
            lambda found: found in ("1", "3"),
            "ports must count, or all flows of two hosts share one link",
        ),
        Wanted(
            "net/ipv6/conf/all/keep_addr_on_down",
            "1",
            "1".__eq__,
            "else an interface that is taken down forgets its IPv6 addresses, unlike IPv4 ones",
        ),
    ]
    for name in interfaces:
        wanted += [
            Wanted(
                f"net/ipv6/conf/{name}/disable_ipv6",
                "0",
                "0".__eq__,
                "neighbors are reached by their IPv6 link-local addresses",
            ),
            Wanted(
                # 1 is fine: it is without effect on a router.
                f"net/ipv6/conf/{name}/accept_ra",
                "0",
                lambda found: found in ("0", "1"),
                "a router learns routes from its protocols, not from router advertisements",
            ),
        ]
    return wanted


def _reverse_path(interfaces: Iterable[str], *, unnumbered: bool) -> list[Wanted]:
    """Even loose checks drop what comes by an interface without an IPv4 address.

    (Unless the way back leads there: measured with four ways of which one was, 24 % arrived.)
    The higher of an interface's value and that of ``all`` counts.
    """
    # In a path an interface name may hold dots, which sysctl(8) writes as slashes.
    paths = [f"net/ipv4/conf/{name}/rp_filter" for name in ("all", "default", *interfaces)]
    if unnumbered:
        why = "checks drop what arrives without an IPv4 address and not by the way back"
        return [Wanted(path, "0", "0".__eq__, why) for path in paths]
    why = "strict reverse path checks drop what arrives by another link of the bundle"
    return [Wanted(path, "2", lambda found: found != "1", why) for path in paths]


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
