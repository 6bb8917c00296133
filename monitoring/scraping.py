"""A real Prometheus that scrapes the routers of a lab: for tests, and for the picture of the board.

Prometheus runs outside of the routers' namespaces. A relay for each router accepts its connections
and opens the other half inside the namespace, where the daemon serves metrics to itself only.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import yaml

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.namespaces import Netns

HERE = Path(__file__).parent
RULES = HERE / "fared.rules.yml"
BOARD = HERE / "fared.grafana.json"
METRICS = ("127.0.0.1", 9547)
_ONE_SECOND = re.compile(r"(?m)^( *for:) \w+$")
_WINDOW = re.compile(r"\[(?:(\d+)m|(\d+)h|\$__rate_interval)\]")
_SHORTEST, _LONGEST = 6, 30
"""Seconds, in place of minutes."""
_PATIENCE = 20.0
_TIMES = ("scrape_interval", "scrape_timeout", "evaluation_interval")


def shortened(expression: str) -> str:
    """Return an expression, or rules, with windows of seconds for minutes, and ``for`` of 1 s."""

    def window(found: re.Match[str]) -> str:
        minutes = int(found[1] or 0) + 60 * int(found[2] or 0)
        return f"[{min(_LONGEST, max(_SHORTEST, round(1.2 * minutes)))}s]"

    return _ONE_SECOND.sub(r"\1 1s", _WINDOW.sub(window, expression))


def board_expressions() -> dict[str, list[tuple[str, str]]]:
    """Return the expressions of the board and their legends, by title of the panel."""
    panels = json.loads(BOARD.read_text("utf-8"))["panels"]
    return {
        panel["title"]: [(one["expr"], one["legendFormat"]) for one in panel["targets"]]
        for panel in panels
        if panel["type"] != "row"
    }


def rule_expressions() -> dict[str, str]:
    """Return the expressions of alerts and recorded series, by name."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    rules = (rule for group in groups for rule in group["rules"])
    return {rule.get("alert") or rule["record"]: rule["expr"] for rule in rules}


def _for_all(expression: str) -> str:
    return shortened(expression).replace("$router", ".*")


class Relay:
    """Passes connections to a port outside on to the metrics of a daemon in a namespace."""

    def __init__(self, netns: Netns) -> None:
        self._netns = netns
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                outer, _ = self._listener.accept()
                try:
                    inner = self._netns.socket(socket.AF_INET, socket.SOCK_STREAM)
                    inner.connect(METRICS)
                except OSError:
                    outer.close()
                    continue
                for pair in ((outer, inner), (inner, outer)):
                    threading.Thread(target=_pump, args=pair, daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for one in (source, sink):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


class Prometheus:
    """Prometheus with the rules of this directory, scraping each second, ``shortened``."""

    def __init__(self, fabric: Fabric, directory: Path) -> None:
        routers = [plan.name for plan in fabric.plan.routers]
        self._relays = {name: Relay(fabric.node(name).netns) for name in routers}
        self._url = f"http://127.0.0.1:{_free_port()}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "rules.yml").write_text(shortened(RULES.read_text("utf-8")))
        config = directory / "prometheus.yml"
        config.write_text(yaml.safe_dump(self._configuration()))
        self._log = (directory / "prometheus.log").open("wb")
        arguments = (
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address={self._url.removeprefix('http://')}",
        )
        command = ("prometheus", *arguments)
        self._process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT)
        self._await()

    def _configuration(self) -> Mapping[str, Any]:
        targets = [
            {"targets": [f"127.0.0.1:{relay.port}"], "labels": {"instance": name}}
            for name, relay in self._relays.items()
        ]
        return {
            "global": dict.fromkeys(_TIMES, "1s"),
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "fared", "static_configs": targets}],
        }

    def _await(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self.value("vector(1)")
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the present series of an expression; windows are shortened."""
        return self._get("query", query=_for_all(expression))

    def value(self, expression: str) -> list[float]:
        """Return the present values of an expression."""
        return [float(series["value"][1]) for series in self.query(expression)]

    def history(self, expression: str, begin: float, end: float) -> list[dict[str, Any]]:
        """Return the series of an expression between two times, each second."""
        return self._get("query_range", query=_for_all(expression), start=begin, end=end, step=1)

    def firing(self) -> set[tuple[str, str]]:
        """Return the alerts that fire, with their instance (or area)."""
        labels = (series["metric"] for series in self.query('ALERTS{alertstate="firing"}'))
        return {(one["alertname"], one.get("instance") or one.get("area", "")) for one in labels}

    def _get(self, what: str, **arguments: object) -> list[dict[str, Any]]:
        url = f"{self._url}/api/v1/{what}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own address
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def __enter__(self) -> Self:
        """Return this Prometheus, which runs."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(20)
        self._log.close()
        for relay in self._relays.values():
            relay.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])
