"""A real Redis behind a socket of its own, with the rows of a switch with SONiC."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from fared.sonic.databases import SonicDatabase, read_databases

DATABASES = {
    name: {"id": number, "separator": separator, "instance": "redis"}
    for name, number, separator in (
        ("APPL_DB", 0, ":"),
        ("COUNTERS_DB", 2, ":"),
        ("CONFIG_DB", 4, "|"),
        ("STATE_DB", 6, "|"),
    )
}
NUMBERS = {name: entry["id"] for name, entry in DATABASES.items()}


class Server:
    """``redis-server`` without TCP, and the file that names its databases."""

    def __init__(self, directory: Path, *, notify: str = "") -> None:
        self.socket, self.file = directory / "redis.sock", directory / "database_config.json"
        instances = {"redis": {"hostname": "127.0.0.1", "unix_socket_path": str(self.socket)}}
        self.file.write_text(
            json.dumps({"INSTANCES": instances, "DATABASES": DATABASES, "VERSION": "1.0"})
        )
        self._directory, self._notify = directory, notify
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("redis-server of Debian")
        options = ("--port", "0", "--save", "", "--dir", str(self._directory))
        notify = ("--notify-keyspace-events", self._notify)
        self.process = subprocess.Popen(
            [program, "--unixsocket", str(self.socket), *options, *notify],
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                answers = self.db("APPL_DB").ping()
            except (RedisError, OSError):
                answers = False
            if answers:
                return
            assert time.monotonic() < deadline, "redis-server answers"
            os.sched_yield()

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.socket.unlink(missing_ok=True)

    def db(self, name: str) -> Redis:
        return Redis(unix_socket_path=str(self.socket), db=NUMBERS[name])

    def set(self, database: str, key: str, **fields: object) -> None:
        with self.db(database) as client:
            client.hset(key, mapping={name: str(value) for name, value in fields.items()})

    @property
    def databases(self) -> dict[str, SonicDatabase]:
        return read_databases(str(self.file))

    # -- rows of a switch -------------------------------------------------------------------

    def port(self, name: str, speed: int, *, oper: str = "up") -> None:
        self.set("CONFIG_DB", f"PORT|{name}", speed=speed, lanes="1,2,3,4")
        self.set("APPL_DB", f"PORT_TABLE:{name}", oper_status=oper, speed=speed)
        self.set("COUNTERS_DB", "COUNTERS_PORT_NAME_MAP", **{name: f"oid:0x{name}"})

    def lag(self, name: str, *members: str, min_links: int = 1) -> None:
        self.set("CONFIG_DB", f"PORTCHANNEL|{name}", min_links=min_links, admin_status="up")
        self.set("APPL_DB", f"LAG_TABLE:{name}", oper_status="up")
        for member in members:
            self.set("CONFIG_DB", f"PORTCHANNEL_MEMBER|{name}|{member}", NULL="NULL")
            self.member(name, member, "enabled")

    def member(self, lag: str, name: str, status: str) -> None:
        self.set("APPL_DB", f"LAG_MEMBER_TABLE:{lag}:{name}", status=status)

    def counters(self, port: str, **fields: int) -> None:
        values = {f"SAI_PORT_STAT_IF_{name}": value for name, value in fields.items()}
        self.set("COUNTERS_DB", f"COUNTERS:oid:0x{port}", **values)
