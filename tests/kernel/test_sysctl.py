"""Sysctls: checked, corrected, or ignored, and always logged."""

import asyncio
import errno
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.kernel.netconf import SettingsWatch, touched
from fared.kernel.sysctl import (
    SettingsKeeper,
    SysctlMode,
    apply_sysctls,
    hash_seed,
    wanted_sysctls,
)
from tests.kernel.netns import inside, run
from tests.waiting import loop_until

PATHS = {
    "net/ipv4/ip_forward": "0",
    "net/ipv4/fib_multipath_hash_policy": "1",
    "net/ipv4/fib_multipath_hash_seed": "0",
    "net/ipv4/nexthop_compat_mode": "1",
    "net/ipv4/igmp_max_memberships": "100",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/conf/swp1.100/forwarding": "1",
    "net/ipv4/conf/swp1.100/rp_filter": "1",
}


@pytest.fixture
def tree(tmp_path):
    for path, value in PATHS.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(value + "\n")
    return tmp_path


def rows(mode, tree):
    wanted = wanted_sysctls(0x0AFF0001, ["swp1.100"])
    return {row.name: row for row in apply_sysctls(mode, wanted, tree)}


def test_set_corrects_what_is_wrong_and_leaves_what_is_right(tree):
    found = rows(SysctlMode.SET, tree)
    assert all(row.ok for row in found.values())
    assert found["net.ipv4.ip_forward"].action == "set"
    assert found["net.ipv4.fib_multipath_hash_policy"].action == "none"
    assert found["net.ipv4.igmp_max_memberships"].found == "100"
    assert found["net.ipv4.conf.swp1/100.rp_filter"].action == "set"
    assert (tree / "net/ipv4/fib_multipath_hash_seed").read_text() == f"{hash_seed(0x0AFF0001)}\n"
    assert (tree / "net/ipv4/conf/swp1.100/rp_filter").read_text() == "2\n"
    assert {row.action for row in rows(SysctlMode.SET, tree).values()} == {"none"}


def test_a_setting_that_cannot_be_set_says_why(tree, monkeypatch):
    """As in a container whose /proc/sys is read-only."""

    def refused(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", refused)
    found = rows(SysctlMode.SET, tree)["net.ipv4.ip_forward"]
    assert (found.action, found.error, found.ok) == ("failed", "Read-only file system", False)


def test_check_reports_and_touches_nothing(tree):
    found = rows(SysctlMode.CHECK, tree)
    wrong = [name for name, row in found.items() if not row.ok]
    assert wrong == [
        "net.ipv4.ip_forward",
        "net.ipv4.fib_multipath_hash_seed",
        "net.ipv4.nexthop_compat_mode",
        "net.ipv4.conf.swp1/100.rp_filter",
    ]
    assert {found[name].action for name in wrong} == {"left"}
    assert (tree / "net/ipv4/ip_forward").read_text() == "0\n"


def test_ignore_does_not_even_look(tree):
    assert rows(SysctlMode.IGNORE, tree) == {}


def test_a_setting_this_kernel_lacks_is_told_and_tolerated(tree):
    (tree / "net/ipv4/fib_multipath_hash_seed").unlink()
    row = rows(SysctlMode.SET, tree)["net.ipv4.fib_multipath_hash_seed"]
    assert (row.action, row.found, row.ok) == ("missing", None, False)


def test_every_router_has_a_seed_of_its_own():
    assert len({hash_seed(router) for router in range(1000)}) == 1000
    assert all(0 < hash_seed(router) < 1 << 32 for router in range(1000))


def test_ipv6_is_left_alone_unless_it_is_routed():
    assert not any("ipv6" in w.path for w in wanted_sysctls(1, ["e0"]))
    paths = [w.path for w in wanted_sysctls(1, ["e0"], ipv6=True)]
    forwarding = paths.index("net/ipv6/conf/all/forwarding")
    assert paths.index("net/ipv4/ip_forward") < forwarding
    assert forwarding < paths.index("net/ipv6/conf/e0/accept_ra")


@pytest.mark.parametrize(("found", "ok"), [("0", True), ("1", True), ("2", False)])
def test_a_router_takes_no_routes_from_advertisements(tmp_path, found, ok):
    """1 means: unless forwarding is on."""
    path = tmp_path / "net/ipv6/conf/e0/accept_ra"
    path.parent.mkdir(parents=True)
    path.write_text(found)
    rows = apply_sysctls(SysctlMode.CHECK, wanted_sysctls(1, ["e0"], ipv6=True), tmp_path)
    assert {row.name: row.ok for row in rows}["net.ipv6.conf.e0.accept_ra"] is ok


def test_ipv4_without_addresses_bears_no_reverse_path_check_at_all(tree):
    """Even the loose one drops what does not arrive by the way back."""
    (tree / "net/ipv4/conf/all/rp_filter").write_text("2\n")
    loose = {row.name: row.ok for row in apply_sysctls(SysctlMode.CHECK, wanted_sysctls(1), tree)}
    assert loose["net.ipv4.conf.all.rp_filter"]
    wanted = wanted_sysctls(1, ["swp1.100"], unnumbered=True)
    apply_sysctls(SysctlMode.SET, wanted, tree)
    for name in ("all", "default", "swp1.100"):
        assert (tree / f"net/ipv4/conf/{name}/rp_filter").read_text() == "0\n"


@pytest.mark.netns
def test_in_a_namespace_they_take_effect(namespaces):
    with inside(namespaces.add()):
        wanted = wanted_sysctls(0x0AFF0001, ["lo"], ipv6=True, unnumbered=True)
        assert [row.name for row in apply_sysctls(SysctlMode.SET, wanted) if not row.ok] == []
        again = apply_sysctls(SysctlMode.CHECK, wanted)
    assert {row.action for row in again} == {"none"}


class Kept:
    """A keeper of one setting, and a clock."""

    def __init__(self, tree, mode=SysctlMode.SET) -> None:
        self.path = tree / "net/ipv4/ip_forward"
        self.keeper = SettingsKeeper(mode, tree)
        self.wanted = wanted_sysctls(1)[:1]
        self.now = 0.0
        self.keeper.check(self.wanted, self.now)

    def meddle(self, value="0"):
        """Somebody writes the setting; what the keeper tells of it."""
        self.path.write_text(f"{value}\n")
        return [(r.action, r.found, r.ok) for r in self.keeper.check(self.wanted, self.now)]


def test_a_setting_that_was_right_is_set_back(tree):
    kept = Kept(tree)
    assert kept.keeper.set_back == 0
    assert kept.meddle() == [("set", "0", True)]
    assert kept.path.read_text() == "1\n"
    assert kept.keeper.set_back == 1
    assert kept.keeper.check(kept.wanted, 0.0) == []


def test_an_accepted_value_of_the_operator_is_restored_not_the_default(tree):
    """Hash policy 3 has fields of its own; 1, the default of fared, would move all flows."""
    path = tree / "net/ipv4/fib_multipath_hash_policy"
    path.write_text("3\n")
    keeper = SettingsKeeper(SysctlMode.SET, tree)
    wanted = wanted_sysctls(1)
    keeper.check(wanted, 0.0)
    path.write_text("0\n")
    (row,) = keeper.check(wanted, 1.0)
    assert (row.action, row.found, row.ok) == ("set", "0", True)
    assert path.read_text() == "3\n"


def test_whoever_insists_on_a_value_has_it_for_half_a_second(tree):
    kept = Kept(tree)
    told = [kept.meddle()[0][0] for _ in range(61)]
    assert told == [*["set"] * 60, "left"]
    assert kept.keeper.next_check() == pytest.approx(0.5)
    kept.now = 0.4
    assert kept.meddle() == []  # as wrong as it was told to be
    kept.now = 0.5
    assert kept.meddle() == [("set", "0", True)]
    assert kept.keeper.next_check() is None


def test_a_setting_that_is_only_checked_is_told_once_wrong_and_once_right(tree):
    kept = Kept(tree)
    kept.meddle("1")
    checked = Kept(tree, SysctlMode.CHECK)
    assert checked.meddle() == [("left", "0", False)]
    assert checked.meddle() == []
    assert checked.path.read_text() == "0\n"
    assert checked.meddle("1") == [("none", "1", True)]


def test_a_setting_that_cannot_be_read_now_stands_as_it_was(tree, monkeypatch):
    kept = Kept(tree)

    def scarce(*_args, **_options):
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", scarce)
        assert kept.keeper.check(kept.wanted, 0.0) == []
        assert [row.ok for row in kept.keeper.rows] == [True]
        fresh = SettingsKeeper(SysctlMode.SET, tree)
        assert [row.action for row in fresh.check(kept.wanted, 0.0)] == ["unread"]
    assert kept.meddle() == [("set", "0", True)]


@pytest.mark.netns
async def test_the_kernel_tells_of_forwarding_and_reverse_path_checks(namespaces):
    name, far = namespaces.add(), namespaces.add()
    ifindex, _ = namespaces.pair(name, far, "e0", 0)
    heard = []
    with inside(name):
        watch = SettingsWatch(heard.extend, lambda: {ifindex: SimpleNamespace(name="e0")})
    watch.start()
    for setting in ("ip_forward=1", "conf.all.rp_filter=1", "conf.e0.rp_filter=2"):
        await asyncio.to_thread(run, f"sysctl -qw net.ipv4.{setting}", name)
    await asyncio.to_thread(run, "sysctl -qw net.ipv6.conf.all.forwarding=1", name)
    wanted = {
        "net/ipv4/ip_forward",
        "net/ipv4/conf/all/rp_filter",
        "net/ipv4/conf/e0/rp_filter",
        "net/ipv4/conf/e0/forwarding",
        "net/ipv6/conf/all/forwarding",
    }
    await loop_until(lambda: wanted <= set(heard))
    watch.close()


@given(st.binary(max_size=64))
def test_any_bytes_about_settings_are_read_without_an_error(body):
    assert isinstance(touched(body, {}), list)
