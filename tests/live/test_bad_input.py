"""User errors, and the answers of the real programs: exit code, message, no traceback."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from fared.extensions.lab.namespaces import Netns
from tests.live.daemons import LINKS, Live, Pair, run_program
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

GOOD = """\
router-id: 10.255.9.9
ospf: {areas: {0: {interfaces: {lo: {passive: true}}}}}
api: {socket: SOCKET, http: off}
"""


class Case(NamedTuple):
    """A file, the exit code, and words that the message must have."""

    name: str
    text: str
    code: int
    words: tuple[str, ...]


CASES = [
    Case("broken YAML", "ospf: {areas: [\n", 2, ("fared.yaml:",)),
    Case("tabs", "ospf:\n\tareas: {}\n", 2, ("fared.yaml:2:",)),
    Case("not a mapping", "- 1\n", 2, ("fared.yaml:1:1", "a mapping")),
    Case("unknown key", GOOD + "adaptve: {enabled: true}\n", 2, ("fared.yaml:4:1", "'adaptive'")),
    Case(
        "wrong type",
        GOOD.replace("passive: true", "passive: 7"),
        2,
        ("fared.yaml:2:", "ospf.areas[0].interfaces.lo.passive", "true or false", "got 7"),
    ),
    Case(
        "several errors at once",
        "router-id: 10.0.0\n" + GOOD.partition("\n")[2] + "fib: {metric: -1, protcol: 201}\n",
        2,
        ("fared.yaml:1:", "fared.yaml:4:", "fib.metric", "fib.protcol", "'protocol'"),
    ),
    Case("no ospf section", "api: {socket: SOCKET, http: off}\n", 2, ("fared.yaml", "ospf")),
    Case("empty file", "", 2, ("fared.yaml", "ospf")),
    Case(
        "no router id",
        GOOD.partition("\n")[2],
        1,
        ("no router id", "router-id", "lo"),
    ),
    Case(
        "socket in a place that is a file",
        GOOD.replace("SOCKET", "/proc/version/x.sock"),
        1,
        ("/proc/version",),
    ),
    Case(
        "socket path too long",
        GOOD.replace("SOCKET", "/tmp/" + 30 * "long/" + "fared.sock"),
        1,
        ("too long", "fared.sock"),
    ),
]


@pytest.fixture(scope="module")
def namespace() -> Iterator[Netns]:
    """An empty namespace: lo has no address but 127.0.0.1."""
    made = Netns.create(f"live{os.getpid()}e")
    yield made
    made.delete()


def write(directory: Path, text: str) -> Path:
    file = directory / "fared.yaml"
    file.write_text(text.replace("SOCKET", str(directory / "fared.sock")))
    return file


def a_message(text: str) -> str:
    """Check what any message must be: some lines for people, and no traceback."""
    assert text.strip()
    assert "Traceback" not in text
    assert len(text.splitlines()) <= 8, text
    return text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_an_invalid_file_ends_the_daemon_with_its_exit_code_and_place(
    namespace: Netns, tmp_path: Path, case: Case
):
    """The daemon ends with the right code and says where and why."""
    file = write(tmp_path, case.text)
    done = run_program("fared", "-c", str(file), netns=namespace)
    message = a_message(done.stderr)
    assert done.returncode == case.code, message
    for word in case.words:
        assert word in message
    assert done.stdout == ""
    if case.code == 2:
        check = run_program("fared-cli", "config", "check", str(file))
        assert check.returncode in (1, 2), check.stderr
        assert "Traceback" not in check.stderr


@pytest.mark.parametrize("what", ["missing", "a directory", "forbidden", "not text"])
def test_an_unreadable_configuration_exits_2(tmp_path: Path, what: str):
    """Exit 2, with the file's name and the reason."""
    file = write(tmp_path, GOOD)
    prefix: tuple[str, ...] = ()
    match what:
        case "missing":
            file, reason = tmp_path / "other.yaml", "No such file"
        case "a directory":
            file, reason = tmp_path, "got a directory"
        case "forbidden":
            file.chmod(0)
            prefix, reason = ("setpriv", "--bounding-set", "-all"), "Permission denied"
        case _:
            file.write_bytes(b"router-id: \xff\xfe\n")
            reason = "utf-8"
    done = run_program("fared", "-c", str(file), prefix=prefix)
    assert done.returncode == 2
    message = a_message(done.stderr)
    assert str(file) in message
    assert reason in message


@pytest.mark.parametrize(
    ("dropped", "named"),
    [("-net_raw", "CAP_NET_RAW"), ("-net_admin", "CAP_NET_ADMIN"), ("-all", "CAP_NET_")],
)
def test_a_capability_that_is_missing_is_named(
    namespace: Netns, tmp_path: Path, dropped: str, named: str
):
    """Exit 1 and the name of what systemd or setcap has to give."""
    file = write(tmp_path, GOOD.replace("{passive: true}", "{cost: 1}"))
    done = run_program(
        "fared",
        "-c",
        str(file),
        netns=namespace,
        prefix=("timeout", "10", "setpriv", "--bounding-set", dropped),
    )
    assert done.returncode == 1, done.stderr
    assert named in a_message(done.stderr)
    assert not (tmp_path / "fared.sock").exists()


def test_without_the_capability_for_its_port_bgp_is_not_begun(namespace: Netns, tmp_path: Path):
    """A session that only this router can open would be half of one."""
    lines = ["link add b0 type veth peer name b1", "addr add 10.77.0.1/24 dev b0"]
    namespace.batch("ip", [*lines, "link set b0 up", "link set b1 up"])
    bgp = "bgp: {as: 65001, neighbors: {10.77.0.2: {remote-as: external}}}"
    (ospf,) = [line for line in GOOD.splitlines() if line.startswith("ospf:")]
    file = write(tmp_path, GOOD.replace(ospf, bgp))
    without = ("timeout", "10", "setpriv", "--bounding-set", "-net_bind_service")
    done = run_program("fared", "-c", str(file), netns=namespace, prefix=without)
    assert done.returncode == 1, done.stderr
    message = a_message(done.stderr)
    assert "no permission to listen on port 179: CAP_NET_BIND_SERVICE is missing" in message


def test_an_ordinary_user_is_told_which_capability_is_missing(namespace: Netns):
    """As nobody: no traceback, exit 1."""
    nobody = ("timeout", "10", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    if run_program("fared", "--version", prefix=nobody).returncode != 0:
        pytest.skip("nobody cannot run the programs here")
    directory = Path(f"/tmp/live{os.getpid()}nobody")
    directory.mkdir(mode=0o777)
    try:
        directory.chmod(0o777)
        file = write(directory, GOOD)
        done = run_program("fared", "-c", str(file), netns=namespace, prefix=nobody)
    finally:
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()
    assert done.returncode == 1, done.stderr
    assert "CAP_NET_ADMIN" in a_message(done.stderr)


def test_a_second_daemon_on_the_same_socket_is_refused(pair: Pair, tmp_path: Path):
    """It names the socket and leaves the first one alone."""
    file = tmp_path / "fared.yaml"
    file.write_text(GOOD.replace("SOCKET", str(pair.left.socket)))
    done = run_program("fared", "-c", str(file), netns=pair.left.netns)
    assert done.returncode == 1
    assert str(pair.left.socket) in a_message(done.stderr)
    assert pair.left.settled()


def test_a_http_port_that_is_taken_is_named(namespace: Netns, tmp_path: Path):
    """Exit 1: address, reason, and where in the file it stands; nothing is left behind."""
    file = write(tmp_path, GOOD.replace("http: off", "http: 127.0.0.1:9999"))
    with namespace.socket(socket.AF_INET, socket.SOCK_STREAM) as taken:
        taken.bind(("127.0.0.1", 9999))
        taken.listen()
        done = run_program("fared", "-c", str(file), netns=namespace)
    assert done.returncode == 1
    last = a_message(done.stderr).splitlines()[-1]
    assert "127.0.0.1:9999" in last
    assert "in use" in last
    assert str(file) in last
    assert not (tmp_path / "fared.sock").exists()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--no-such-option",), "no-such-option"),
        (("shw", "routes"), "did you mean 'show'"),
        (("show", "rotues"), "did you mean 'routes'"),
        (("show", "s"), "ambiguous"),
        (("show",), "status"),
        (("explain",), "PREFIX"),
        (("show", "status", "extra"), "extra"),
        (("--watch", "often", "show", "status"), "watch"),
    ],
)
def test_the_tool_used_wrongly_exits_2_with_a_hint(arguments: tuple[str, ...], hint: str):
    """Usage errors never reach the daemon."""
    done = run_program("fared-cli", *arguments)
    assert done.returncode == 2
    assert hint in done.stderr
    assert "Traceback" not in done.stderr


def test_the_daemon_used_wrongly_exits_2():
    """Unknown options."""
    done = run_program("fared", "--colour")
    assert done.returncode == 2
    assert "--colour" in a_message(done.stderr)


@pytest.mark.parametrize("arguments", [("show", "status"), ("drain",), ("config", "reload")])
def test_a_command_without_a_daemon_exits_3(tmp_path: Path, arguments: tuple[str, ...]):
    """The socket is named, and how to name another."""
    path = str(tmp_path / "none.sock")
    done = run_program("fared-cli", "-s", path, *arguments)
    assert (done.returncode, done.stdout) == (3, "")
    message = a_message(done.stderr)
    assert path in message
    assert "-s SOCKET" in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("explain", "198.51.100.0/24"), "no route to 198.51.100.0/24"),
        (("explain", "10.0.0.0.0"), "10.0.0.0.0"),
        (("show", "routes", "300.1.1.1"), "300.1.1.1"),
        (("show", "database", "nonsense"), "nonsense"),
        (("path", "10.255.9.1", "10.255.9.77"), "no route to 10.255.9.77"),
    ],
)
def test_requests_with_malformed_or_unknown_prefixes_and_ids_exit_1(
    pair: Pair, arguments: tuple[str, ...], words: str
):
    """Malformed and unknown prefixes and ids are not errors of the daemon."""
    done = pair.left.cli(*arguments)
    assert done.returncode == 1
    assert words in a_message(done.stderr)
    assert done.stdout == ""


def test_an_interface_that_appears_later_is_warned_of_and_then_used(pair: Pair, tmp_path: Path):
    """A name in the file without an interface is no error: interfaces come and go."""
    netns = Netns.create(f"live{os.getpid()}l")
    interfaces = {"lo": {"passive": True}, "late0": {"cost": 10}}
    config = {
        "router-id": "10.255.9.9",
        "ospf": {"areas": {"0.0.0.0": {"interfaces": interfaces}}},
    }
    daemon = Live(netns, tmp_path, config)
    try:
        daemon.start()
        missing = [r for r in daemon.records() if r["event"] == "interface-missing"]
        assert [record["interface"] for record in missing] == ["late0"]
        assert daemon.alive()
        netns.batch(
            "ip",
            [
                "link add late0 type veth peer name late1",
                "addr add 10.129.7.0/31 dev late0",
                "link set late1 up",
                "link set late0 up",
            ],
        )
        wait_for(
            lambda: "late0" in [i["interface"] for i in daemon.show("interfaces")["interfaces"]],
            20,
            "OSPF runs on the new interface",
        )
        wait_for(lambda: daemon.counters()["packets"].get("sent hello", 0) > 0, 20, "a hello")
        assert not daemon.complaints()
    finally:
        daemon.kill()
        netns.delete()
    assert pair.left.full() == len(LINKS)
