"""Real daemons for the tests: the ``fared`` executable in a network namespace of its own."""

from __future__ import annotations

import contextlib
import copy
import http.client
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.namespaces import Netns
from fared.management.api.client import ControlClient, DaemonRefusedError, DaemonUnreachableError
from fared.management.cli.main import main
from tests.waiting import wait_for

BIN = Path(sys.executable).parent
REPOSITORY = Path(__file__).resolve().parents[2]
Json = dict[str, Any]
LEFT, RIGHT = "10.255.9.1", "10.255.9.2"
LEFT_STUB, RIGHT_STUB = "10.0.91.0/24", "10.0.92.0/24"
LINKS = ("u0", "u1")
NICE = -5
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


OF_OTHERS = ("hellos are accepted", "router id is unique")
"""The checks of ``validate`` that fail by what strangers send."""


class Live:
    """One ``fared``: its namespace, configuration and process, with methods to query it."""

    def __init__(self, netns: Netns, directory: Path, config: Json) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.netns = netns
        self.directory = directory
        self.file = directory / "fared.yaml"
        self.socket = directory / "fared.sock"
        self.log = directory / "fared.log"
        self.config = {
            **config,
            "state-directory": str(directory),
            "api": {"socket": str(self.socket), "http": "127.0.0.1:9547"},
            "log": {"level": "info", "format": "json"},
        }
        self.arguments: list[str] = []
        """More arguments of the program."""
        self.altered: dict[str, str] = {}
        """What ``altered_fared`` is to alter; nothing: the product itself runs."""
        self.process: subprocess.Popen[bytes] | None = None

    # -- process

    def write(self, config: Json | None = None) -> None:
        """Write the configuration file, by default the initial one."""
        self.file.write_text(yaml.safe_dump(config or self.config, sort_keys=False))

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Start the process, and wait until its control socket answers."""
        self.write()
        program = (
            [sys.executable, "-m", "tests.live.altered_fared"] if self.altered else [BIN / "fared"]
        )
        with self.netns.entered(), self.log.open("ab") as sink:
            self.process = subprocess.Popen(
                [*program, "-c", self.file, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env={**os.environ, **self.altered, **(environment or {})},
                cwd=REPOSITORY,
                start_new_session=True,
            )
        wait_for(self._answers, 60, f"{self.file} answers")

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        try:
            self.show("status")
        except (DaemonUnreachableError, DaemonRefusedError):
            return False
        return True

    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def prioritize(self) -> None:
        """Give the process the priority of the service (``Nice`` in the unit), as root."""
        assert self.process is not None
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, self.process.pid, NICE)

    def terminate(self) -> tuple[int, float]:
        """Send SIGTERM; return the exit code and the seconds until the exit."""
        assert self.process is not None
        begun = time.monotonic()
        self.signal(signal.SIGTERM)
        code = self.process.wait(30)
        self.process = None
        return code, time.monotonic() - begun

    def kill(self) -> None:
        """Send SIGKILL, to simulate a crash."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def reload(self, config: Json | None = None) -> None:
        """Reload a configuration, by default the initial one."""
        self.write(config)
        done = self.cli("config", "reload")
        assert done.returncode == 0, done.stdout + done.stderr

    def redistribute(self, protocol: str, **sources: Any) -> None:
        """Reload with these sources of a protocol."""
        config = copy.deepcopy(self.config)
        config[protocol]["redistribute"] = sources
        self.reload(config)

    # -- queries

    def ask(self, command: str, what: str | None = None, **arguments: Any) -> Json:
        """Request one document from the control socket."""
        return ControlClient(str(self.socket), 30).request(command, what, arguments)

    def show(self, what: str, **arguments: Any) -> Json:
        """One document of ``show``."""
        return self.ask("show", what, **arguments)

    def counters(self) -> dict[str, dict[str, int]]:
        """All counters: values by group and name."""
        found: dict[str, dict[str, int]] = {}
        for row in self.show("counters")["counters"]:
            found.setdefault(row["group"], {})[row["name"]] = row["value"]
        return found

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``fared-cli``."""
        return run_program("fared-cli", "-s", str(self.socket), *arguments, netns=self.netns)

    def on_terminal(self, *arguments: str) -> tuple[int, str]:
        """Run ``fared-cli`` on a terminal of 80 columns; return the exit code and the output."""
        return on_terminal([str(BIN / "fared-cli"), "-s", str(self.socket), *arguments])

    def assert_answers(self, *command: str) -> None:
        """Assert that a command prints a table within 80 columns, and JSON of version 1."""
        code, shown = self.on_terminal(*command)
        assert code == 0, shown
        assert shown
        if command != ("show", "log"):
            assert max(map(len, shown.splitlines())) <= 80, shown
        # the same in this process: a program takes a tenth of a second of CPU to start
        answer = CliRunner().invoke(main, ["-s", str(self.socket), *command, "--json"])
        assert (answer.exit_code, answer.stderr) == (0, "")
        name, _, version = json.loads(answer.stdout)["format"].partition("/")
        assert name.startswith("fared-")
        assert version == "1"

    def full(self) -> int:
        """The number of neighbors that are Full (OSPF) or Up (IS-IS)."""
        return sum(n["state"] in ("Full", "Up") for n in self.show("neighbors")["neighbors"])

    def settled(self) -> bool:
        """Whether the daemon is ready, and all its routes are in the kernel.

        What others have sent meanwhile, and was refused, is no part of it.
        """
        checks = self.ask("validate")["checks"]
        own = [check["ok"] for check in checks if check["name"] not in OF_OTHERS]
        return bool(self.show("status")["ready"]) and all(own)

    def get(self, path: str) -> tuple[int, str]:
        """HTTP GET inside the namespace: status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", 9547, timeout=10)
        connection.sock = self.netns.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.sock.settimeout(10)
        connection.sock.connect(("127.0.0.1", 9547))
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics by name with labels."""
        status, text = self.get("/metrics")
        assert status == 200
        lines = (line for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def records(self) -> list[Json]:
        """The log records; a line that is not JSON has the key ``raw``.

        Lines that wait (``daemon.people.logs``) are written for whoever asks for the last ones.
        """
        if self.alive():
            with contextlib.suppress(DaemonUnreachableError, DaemonRefusedError):
                self.show("log")
        found = []
        for line in self.log.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                found.append({"event": "raw", "level": "error", "raw": line})
        return found

    def complaints(self) -> list[Json]:
        """Log records that are never expected: errors, tracebacks, text of other libraries."""
        errors = [record for record in self.records() if record.get("level") == "error"]
        return [record for record in errors if record["event"] != "reload-refused"]

    def resident(self) -> int:
        """Resident memory, bytes."""
        assert self.process is not None
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", text)
        assert found is not None
        return int(found[1]) << 10


def run_program(
    program: str, *arguments: str, netns: Netns | None = None, prefix: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run one of the installed programs, and wait for its exit."""
    command = [*prefix, str(BIN / program), *arguments]
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    with netns.entered() if netns is not None else contextlib.nullcontext():
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env=environment
        )


def on_terminal(
    command: Sequence[str], directory: Path | None = None, **environment: str
) -> tuple[int, str]:
    """Run a program on a terminal of 80 columns; return the exit code and the output."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    variables = {**os.environ, "NO_COLOR": "1", "TERM": "vt100", **environment}
    variables.pop("COLUMNS", None)
    tool = subprocess.Popen(command, stdout=slave, stderr=slave, env=variables, cwd=directory)
    os.close(slave)
    shown = b""
    # EIO: the last program on the terminal has closed it
    with os.fdopen(master, "rb", 0) as terminal, contextlib.suppress(OSError):
        while received := terminal.read(1 << 16):
            shown += received
    return tool.wait(60), _CONTROLS.sub("", shown.decode().replace("\r\n", "\n"))


class Pair:
    """Two routers with two parallel links, and a stub network at each."""

    def __init__(
        self, tag: str, directory: Path, configure: Callable[[str, str], Json] | None = None
    ) -> None:
        """``configure`` returns the configuration of a router id and hostname; default: OSPF."""
        name = f"live{os.getpid()}{tag}"
        make = configure or _config
        self.left = Live(Netns.create(f"{name}a"), directory / "a", make(LEFT, "left"))
        self.right = Live(Netns.create(f"{name}b"), directory / "b", make(RIGHT, "right"))
        right = self.right.netns.name
        commands = []
        for number, link in enumerate(LINKS):
            commands.append(
                f"link add name {link} index {10 + number} type veth"
                f" peer name {link} index {110 + number} netns {right}"
            )
        self.left.netns.batch("ip", commands)
        for number, daemon in enumerate((self.left, self.right)):
            identity = (LEFT, RIGHT)[number]
            lines = [f"addr add {identity}/32 dev lo", "link add d0 type veth peer name dx"]
            lines += [f"addr add 10.0.{91 + number}.1/24 dev d0", "link set d0 up"]
            lines.append("link set dx up")
            for index, link in enumerate(LINKS):
                lines += [f"addr add 10.129.{index}.{number}/31 dev {link}", f"link set {link} up"]
            daemon.netns.batch("ip", lines)
        self.view = KernelView(self.left.netns)

    def start(self) -> None:
        """Start both, and wait until they have converged."""
        self.left.start()
        self.right.start()
        self.await_routes()

    def await_routes(self, seconds: float = 30) -> None:
        """Wait until both adjacencies are Full at both ends and the kernel has the routes."""
        for daemon in (self.left, self.right):
            wait_for(lambda d=daemon: d.full() == len(LINKS), seconds, "full")
            wait_for(daemon.settled, seconds, "the kernel holds what was computed")
        try:
            wait_for(lambda: self.used() == set(LINKS), seconds, "a route over both links")
        except AssertionError as error:
            raise AssertionError(self.story()) from error

    def used(self, prefix: str = RIGHT_STUB) -> set[str]:
        """The interfaces over which the left kernel reaches a prefix."""
        return {hop.interface for hop in self.view.hops(prefix)}

    def story(self) -> str:
        """The state of both daemons and kernels, for the message when a pair does not converge."""
        parts = []
        for daemon in (self.left, self.right):
            parts += [daemon.netns.ip("route"), daemon.netns.ip("link")]
            parts += [daemon.cli("show", what).stdout for what in ("interfaces", "routes", "fib")]
            parts.append(daemon.log.read_text())
        return "\n".join(parts)

    def close(self) -> None:
        """End the daemons and remove the namespaces."""
        self.view.close()
        for daemon in (self.left, self.right):
            daemon.kill()
            daemon.netns.delete()


@contextlib.contextmanager
def running_pair(
    tag: str, directory: Path, configure: Callable[[str, str], Json] | None = None
) -> Iterator[Pair]:
    """Run two routers for a block, which begins when they have converged."""
    pair = Pair(tag, directory, configure)
    try:
        pair.start()
        yield pair
    finally:
        pair.close()


def _config(identity: str, hostname: str) -> Json:
    links = {"network-type": "point-to-point", "hello-interval": 1, "dead-interval": 4}
    return {
        "router-id": identity,
        "hostname": hostname,
        "interfaces": {"u0": {"bandwidth": "auto"}, "u1": {"bandwidth": "auto"}},
        "ospf": {
            "areas": {
                "0.0.0.0": {
                    "interfaces": {
                        "lo": {"passive": True},
                        "d0": {"passive": True},
                        **{link: {**links, "cost": 10} for link in LINKS},
                    }
                }
            }
        },
    }
