"""``fared-cli config template`` on a machine of its own: a namespace with cables and a bridge."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from fared.kernel.present import read_present
from fared.management.cli.main import main
from tests.kernel.netns import Namespaces, inside, run
from tests.waiting import wait_for

SETUP = """
address add 10.255.0.1/32 dev lo
link add up1 type veth peer name far1
link add up2 type veth peer name far2
link add br7 type bridge
link set far2 master br7
address add 10.1.0.0/31 dev up1
address add 10.0.7.1/24 dev br7
link set lo up
link set up1 up
link set far1 up
link set up2 up
link set far2 up
link set br7 up
address add 192.0.2.5/24 dev far1
route add default via 192.0.2.1
"""


@pytest.fixture(scope="module")
def machine():
    made = Namespaces()
    try:
        name = made.add()
        for line in SETUP.split("\n"):
            if line:
                run(f"ip {line}", name)
        with inside(name):  # the kernel takes up to a second to report a carrier
            wait_for(lambda: all(each.link.up for each in read_present()), 10.0, "carrier")
        yield name
    finally:
        made.close()


@pytest.mark.netns
@pytest.mark.parametrize("proto", ["ospf", "isis", "bgp"])
@pytest.mark.parametrize("role", ["leaf", "spine", "superspine"])
def test_the_daemon_accepts_what_is_written_for_a_machine(machine, tmp_path, role, proto):
    """A cable with a /31, one without address, a bridge of hosts, and the default route's port."""
    with inside(machine):
        result = CliRunner().invoke(main, ["config", "template", role, "--proto", proto])
    assert result.exit_code == 0, result.output
    assert not result.stderr
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "router-id: 10.255.0.1 # the address of the loopback" in lines
    told = "own" if role == "leaf" else "all"
    entry = f"{{import: all, export: {told}}}" if proto == "bgp" else "{}"
    assert f"up1: {entry} # 10.1.0.0/31, 10G" in lines
    assert f"up2: {entry} # unnumbered, 10G" in lines
    own = "- {}" if proto == "bgp" else "{}: {{passive: true}}"
    assert f"{own.format('lo')} # 10.255.0.1/32" in lines
    assert f"{own.format('br7')} # 10.0.7.1/24" in lines
    left_out = f"# far1: {entry} # the default route leaves here: management?, 192.0.2.5/24"
    assert left_out in lines
    assert f"# far2: {entry} # belongs to a bridge, bond or VRF" in lines
    file = tmp_path / "fared.yaml"
    file.write_text(result.stdout)
    command = [sys.executable, "-m", "fared.daemon.main", "-c", str(file), "--check"]
    with inside(machine):
        checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_role_may_be_shortened_and_a_wrong_one_gets_a_hint():
    assert CliRunner().invoke(main, ["config", "templ", "sup"]).exit_code == 0
    result = CliRunner().invoke(main, ["config", "template", "laef"])
    assert result.exit_code == 2
    assert "did you mean 'leaf'?" in result.stderr
