"""The kernel settings that weighted forwarding depends on.

With the defaults of Linux all RoCE flows between two hosts take one link, all routers of a fabric
in namespaces hash alike, and a group rewrite costs 400 times more than necessary. Without
forwarding the host is no router. So ``daemon.loop.sysctls`` writes the settings at start and
watches them: ``netconf`` reports changes of some at once, the others are polled.
``/proc/sys/net`` is that of the network namespace of the process that opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec.structs import replace

from fared.core.sysctl import SysctlRow
from fared.paths.fib.disputes import Disputes

PROC_SYS = Path("/proc/sys")
_MEMBERSHIPS = 20


class SysctlMode(StrEnum):
    """The reaction to a wrong value: correct it, report it, or ignore it."""

    SET = "set"
    CHECK = "check"
    IGNORE = "ignore"


class Wanted(msgspec.Struct, frozen=True):
    """A setting: name with slashes, value to write, a test for accepted values, and the reason."""

    path: str
    value: str
    accepts: Callable[[str], bool]
    why: str

    @property
    def name(self) -> str:
        """The name as sysctl(8) writes it; dots in interface names become slashes."""
        return self.path.translate(str.maketrans("/.", "./"))


def hash_seed(router_id: int) -> int:
    """Return a hash seed for a router, never 0 (which selects the host's shared secret).

    With equal seeds each tier selects among flows already selected by the same hash in the tier
    below: half of the links carry nothing.
    """
    mixed = router_id
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):  # MurmurHash3's last step
        mixed = (mixed ^ mixed >> shift) * factor & 0xFFFFFFFF
    return mixed or 1


def wanted_sysctls(
    router_id: int,
    interfaces: Iterable[str] = (),
    *,
    ipv6: bool = False,
    unnumbered: bool = False,
) -> list[Wanted]:
    """Return the settings for a router, in the order in which they must be written.

    ``ipv6``: IPv6 routes are installed, or IPv4 routes over IPv6 next hops. ``unnumbered``: some
    ``interfaces`` carry IPv4 without an IPv4 address of their own.
    """
    names = tuple(interfaces)
    return [
        *_ipv4(router_id),
        *_forwarding(names),
        *(_ipv6(names) if ipv6 else ()),
        *_reverse_path(names, unnumbered=unnumbered),
    ]


def _ipv4(router_id: int) -> list[Wanted]:
    """Return the settings of IPv4, forwarding first: enabling it resets others to router defaults.

    The seed applies to both families.
    """
    return [
        Wanted("net/ipv4/ip_forward", "1", "1".__eq__, "a router forwards"),
        Wanted(
            "net/ipv4/fib_multipath_hash_policy",
            "1",
            lambda found: found in ("1", "3"),
            "ports must count, or all flows between two hosts take one link",
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
            "otherwise a group rewrite also notifies every route that uses it",
        ),
        Wanted(
            "net/ipv4/igmp_max_memberships",
            str(_MEMBERSHIPS),
            lambda found: int(found) >= _MEMBERSHIPS,
            "OSPF joins multicast groups",
        ),
    ]


def _forwarding(interfaces: Iterable[str]) -> list[Wanted]:
    """Return forwarding per interface: ip_forward enables it, but it can be disabled for one."""
    why = "packets that arrive there are not forwarded"
    return [Wanted(f"net/ipv4/conf/{name}/forwarding", "1", "1".__eq__, why) for name in interfaces]


def _ipv6(interfaces: Iterable[str]) -> list[Wanted]:
    """Return the settings of IPv6.

    Duplicate address detection (accept_dad) stays as configured by the operator: an interface that
    was set down gets its link-local address back 1 to 2 s after it comes up; a lost carrier keeps
    it. Optimistic addresses would not help: Linux supports them on hosts only.
    """
    wanted = [
        Wanted("net/ipv6/conf/all/forwarding", "1", "1".__eq__, "a router forwards"),
        Wanted(
            "net/ipv6/fib_multipath_hash_policy",
            "1",
            lambda found: found in ("1", "3"),
            "ports must count, or all flows between two hosts take one link",
        ),
        Wanted(
            "net/ipv6/conf/all/keep_addr_on_down",
            "1",
            "1".__eq__,
            "otherwise an interface that is set down loses its IPv6 addresses",
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
                # 1 has no effect while the interface forwards.
                f"net/ipv6/conf/{name}/accept_ra",
                "0",
                lambda found: found in ("0", "1"),
                "a router learns routes from its protocols, not from router advertisements",
            ),
        ]
    return wanted


def _reverse_path(interfaces: Iterable[str], *, unnumbered: bool) -> list[Wanted]:
    """Return the reverse path settings: the higher of an interface's and that of ``all`` counts.

    Even loose checks drop packets that arrive on an interface without an IPv4 address, unless the
    route back uses it: with four paths, of which one did, 24 % arrived.
    """
    # In these paths an interface name keeps its dots, which sysctl(8) writes as slashes.
    paths = [f"net/ipv4/conf/{name}/rp_filter" for name in ("all", "default", *interfaces)]
    if unnumbered:
        why = "checks drop packets on interfaces without IPv4 address"
        return [Wanted(path, "0", "0".__eq__, why) for path in paths]
    why = "strict checks drop packets that arrive by another link than the route back"
    return [Wanted(path, "2", lambda found: found != "1", why) for path in paths]


def apply_sysctls(
    mode: SysctlMode, wanted: Iterable[Wanted], root: Path = PROC_SYS
) -> list[SysctlRow]:
    """Check settings, correct them in mode ``set``; return a row for each, none in ``ignore``."""
    if mode is SysctlMode.IGNORE:
        return []
    return [_apply(mode, setting, root / setting.path) for setting in wanted]


class SettingsKeeper:
    """Keeps the settings right while the daemon runs; ``rows`` is their present state.

    In mode ``check`` they are only read, in mode ``ignore`` not at all. A correction restores the
    last accepted value, which may be the operator's own: of hash policies, 3 and not 1. If another
    program keeps writing a different value, corrections follow at a limited rate (``Disputes``).
    """

    def __init__(self, mode: SysctlMode, root: Path = PROC_SYS) -> None:
        self._mode = mode
        self._root = root
        self._rows: dict[str, SysctlRow] = {}
        self._disputes = Disputes()
        self._not_before: dict[str, float] = {}
        self._accepted: dict[str, str] = {}
        self.set_back = 0
        """Counts settings that were changed by others and corrected."""

    @property
    def rows(self) -> list[SysctlRow]:
        """All settings, in the order they are written."""
        return list(self._rows.values())

    def next_check(self) -> float | None:
        """Return when a disputed setting may be set again; None without one."""
        return min(self._not_before.values(), default=None)

    def check(
        self, wanted: Iterable[Wanted], now: float, only: Container[str] | None = None
    ) -> list[SysctlRow]:
        """Read the settings, or only those with paths in ``only``; return the rows that changed.

        In mode ``set`` they are corrected.
        """
        if self._mode is SysctlMode.IGNORE:
            return []
        changed: list[SysctlRow] = []
        rows: dict[str, SysctlRow] = {}
        for setting in wanted:
            path, known = setting.path, self._rows.get(setting.path)
            if known is not None and only is not None and path not in only:
                rows[path] = known
                continue
            row = rows[path] = self._look(setting, known, now)
            if known is None or (row is not known and not _alike(row, known)):
                changed.append(row)
        self._rows = rows
        for kept in (self._not_before, self._accepted):
            for path in kept.keys() - rows.keys():
                del kept[path]
        return changed

    def _look(self, setting: Wanted, known: SysctlRow | None, now: float) -> SysctlRow:
        """Check a setting, and set it back, less often the more it is disputed; return its row."""
        path = self._root / setting.path
        row = _apply(SysctlMode.CHECK, setting, path)
        if row.action == "unread" and known is not None:  # no descriptor or memory just now
            return known
        if row.ok:
            if row.found is not None:
                self._accepted[setting.path] = row.found
            self._not_before.pop(setting.path, None)
            return known if known is not None and known.ok else row
        if row.action != "left" or self._mode is SysctlMode.CHECK:
            return row
        if known is not None and known.ok:
            pause = self._disputes.pause(setting.path, now)
            if pause:
                self._not_before[setting.path] = now + pause
        if self._not_before.get(setting.path, now) > now:
            return row
        self._not_before.pop(setting.path, None)
        row = replace(_apply(self._mode, self._restored(setting), path), found=row.found)
        self.set_back += known is not None and row.ok
        return row

    def _restored(self, setting: Wanted) -> Wanted:
        """The setting with the value to write: the last accepted one, if it still is."""
        value = self._accepted.get(setting.path, setting.value)
        return replace(setting, value=value) if _accepts(setting, value) else setting


def _alike(row: SysctlRow, known: SysctlRow) -> bool:
    """Whether a setting still has the same wrong value, which is reported already."""
    return not row.ok and not known.ok and row.found == known.found


def _apply(mode: SysctlMode, setting: Wanted, path: Path) -> SysctlRow:
    try:
        found = _read(path)
    except OSError as failure:
        error = failure.strerror
        return SysctlRow(setting.name, setting.value, None, "unread", False, setting.why, error)
    error = None
    if found is None:
        action, ok = "missing", False
    elif _accepts(setting, found):
        action, ok = "none", True
    elif mode is SysctlMode.CHECK:
        action, ok = "left", False
    else:
        error = _write(path, setting.value)
        ok = error is None and _reads_back(setting, path)
        action = "set" if ok else "failed"
    return SysctlRow(setting.name, setting.value, found, action, ok, setting.why, error)


def _accepts(setting: Wanted, found: str) -> bool:
    try:
        return setting.accepts(found)
    except ValueError:
        return False


def _reads_back(setting: Wanted, path: Path) -> bool:
    try:
        return _accepts(setting, _read(path) or "")
    except OSError:
        return False


def _read(path: Path) -> str | None:
    """Return the value; None where the kernel has no such setting. Raises OSError otherwise."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        return ""


def _write(path: Path, value: str) -> str | None:
    """Write a value; return why the kernel refuses it."""
    try:
        path.write_text(value + "\n", encoding="ascii")
    except OSError as error:
        return error.strerror or str(error)
    return None
