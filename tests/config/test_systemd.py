"""The service files: right sections, least privilege, and systemd's own opinion where it is
here."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fared.config import load_text
from fared.runtime.sockets import INA_SOCKET

ROOT = Path(__file__).parents[2]
SYSTEMD = ROOT / "systemd"
UNIT = SYSTEMD / "fared.service"
INA_UNIT = SYSTEMD / "fared-ina.service"


def settings(unit: Path = UNIT) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        match = re.fullmatch(r"(\w+)=(.*)", line)
        if match:
            found.setdefault(match[1], []).append(match[2])
    return found


def test_the_unit_runs_with_three_capabilities_and_no_root():
    """Netlink, raw sockets and the port of BGP, nothing else."""
    unit = settings()
    assert unit["User"] == ["fared"]
    capabilities = ["CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE"]
    assert unit["AmbientCapabilities"] == unit["CapabilityBoundingSet"] == capabilities
    assert unit["NoNewPrivileges"] == ["yes"]


def test_the_process_that_sums_has_no_capability_and_a_limit_of_memory():
    unit = settings(INA_UNIT)
    assert unit["CapabilityBoundingSet"] == unit["AmbientCapabilities"] == [""]
    assert unit["RestrictAddressFamilies"] == ["AF_UNIX AF_INET"]
    assert unit["MemoryMax"]
    assert unit["User"] == ["fared-ina"]
    assert unit["Group"] == ["fared"]
    assert INA_SOCKET.startswith(f"/run/{unit['RuntimeDirectory'][0]}/")


def test_the_unit_reports_readiness_and_is_watched():
    """A refused file stops no running router, and is not tried again and again."""
    unit = settings()
    assert unit["Type"] == ["notify"]
    assert "ExecStartPre" not in unit, "RestartPreventExitStatus= does not cover it"
    assert unit["ExecStart"][0].endswith("--fallback")
    assert unit["ExecReload"][0].endswith("--check")
    assert unit["ExecReload"][-1] == '/bin/sh -c "kill -HUP $MAINPID"'
    assert int(unit["WatchdogSec"][0]) > 0
    assert unit["RestartPreventExitStatus"] == ["2"]


def test_an_end_by_sighup_is_no_clean_end():
    assert settings()["RestartForceExitStatus"] == ["SIGHUP"]
    assert settings(INA_UNIT)["RestartForceExitStatus"] == ["SIGHUP"]


def test_the_unit_leaves_room_for_what_the_configuration_promises():
    """Directories of socket and state exist, sysctls can be written, packet sockets opened."""
    unit = settings()
    assert load_text("").api.socket.startswith(f"/run/{unit['RuntimeDirectory'][0]}/")
    assert load_text("").state_directory == f"/var/lib/{unit['StateDirectory'][0]}"
    assert unit["ProtectKernelTunables"] == ["yes"]
    assert "-/proc/sys/net" in unit["ReadWritePaths"]
    assert unit["ProcSubset"] == ["all"]
    assert {"AF_NETLINK", "AF_PACKET"} <= set(unit["RestrictAddressFamilies"][0].split())


def test_the_protocol_number_has_a_name():
    """`ip route show proto fared` works with the default protocol."""
    lines = (SYSTEMD / "rt_protos.d" / "fared.conf").read_text().splitlines()
    assert f"{load_text('').fib.protocol} fared" in lines


def test_networkd_leaves_routes_rules_and_next_hops_alone():
    found = settings(SYSTEMD / "networkd.conf.d" / "fared.conf")
    assert found == {
        f"ManageForeign{what}": ["no"] for what in ("Routes", "RoutingPolicyRules", "NextHops")
    }


@pytest.mark.parametrize("page", [ROOT / "README.md", UNIT], ids=lambda page: page.name)
def test_the_documented_steps_for_another_path_change_every_command_of_the_unit(page, tmp_path):
    """The sed of README.md and of the unit's head, run as written, into a scratch directory."""
    sed = next(line for line in page.read_text().splitlines() if "sed 's|" in line).lstrip("# ")
    command = sed.replace("/etc/systemd/system", str(tmp_path))
    subprocess.run(["/bin/sh", "-c", command], cwd=page.parent, timeout=60, check=True)
    copy = (tmp_path / "fared.service").read_text()
    commands = re.findall(r"^Exec\w+=(\S+)", copy, re.MULTILINE)
    assert commands == ["/opt/fared/bin/fared"] * 2 + ["/bin/sh"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
@pytest.mark.parametrize("unit", [UNIT, INA_UNIT], ids=lambda unit: unit.name)
def test_systemd_accepts_the_unit(unit, tmp_path):
    """No unknown setting, and an exposure of at most 1.8 by systemd's own count."""
    text = re.sub("/usr/bin/fared(-ina)?", "/bin/true", unit.read_text())
    copy = tmp_path / unit.name
    copy.write_text(text)
    verify = ["systemd-analyze", "verify", "--man=no", str(copy)]
    result = subprocess.run(verify, capture_output=True, text=True, timeout=60, check=False)
    complaints = [line for line in result.stderr.splitlines() if unit.name in line]
    assert complaints == []
    security = ["systemd-analyze", "security", "--offline=true", "--threshold=18", str(copy)]
    result = subprocess.run(security, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout
