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
EXAMPLE = HERE / "prometheus.yml"
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


def board_panels(*kinds: str) -> list[dict[str, Any]]:
    """Return the panels of the board of some kinds; without any kind, all but the rows."""
    panels = json.loads(BOARD.read_text("utf-8"))["panels"]
    return [one for one in panels if (one["type"] in kinds if kinds else one["type"] != "row")]


def board_expressions(*kinds: str) -> dict[str, list[tuple[str, str]]]:
    """Return the expressions of the panels and their legends, by title."""
    return {
        panel["title"]: [(one["expr"], one["legendFormat"]) for one in panel["targets"]]
        for panel in board_panels(*kinds)
    }


def board_annotations() -> dict[str, str]:
    """Return the expressions of the changes that the board marks, by name."""
    board = json.loads(BOARD.read_text("utf-8"))
    return {one["name"]: one["expr"] for one in board["annotations"]["list"]}


def rule_expressions() -> dict[str, str]:
    """Return the expressions of alerts and recorded series, by name."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    rules = (rule for group in groups for rule in group["rules"])
    return {rule.get("alert") or rule["record"]: rule["expr"] for rule in rules}


def _for_all(expression: str) -> str:
    return expression.replace("$router", ".*").replace("$fabric", ".*")


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
    """Prometheus with the rules of this directory, scraping each second, ``shortened``.

    Not ``brief``: with the rules and the intervals of the example, which take minutes.
    """

    def __init__(self, fabric: Fabric, directory: Path, *, brief: bool = True) -> None:
        self._brief = brief
        routers = [plan.name for plan in fabric.plan.routers]
        self._relays = {name: Relay(fabric.node(name).netns) for name in routers}
        self._url = f"http://127.0.0.1:{_free_port()}"
        directory.mkdir(parents=True, exist_ok=True)
        rules = RULES.read_text("utf-8")
        (directory / "rules.yml").write_text(shortened(rules) if brief else rules)
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
        example = yaml.safe_load(EXAMPLE.read_text("utf-8"))["global"]
        return {
            "global": dict.fromkeys(_TIMES, "1s") if self._brief else example,
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
        """Return the present series of an expression; windows are shortened as the rules are."""
        return self._get("query", query=self._asked(expression))

    def value(self, expression: str) -> list[float]:
        """Return the present values of an expression."""
        return [float(series["value"][1]) for series in self.query(expression)]

    def history(self, expression: str, begin: float, end: float) -> list[dict[str, Any]]:
        """Return the series of an expression between two times, each second."""
        asked = self._asked(expression)
        return self._get("query_range", query=asked, start=begin, end=end, step=1)

    def _asked(self, expression: str) -> str:
        return _for_all(shortened(expression) if self._brief else expression)

    def alerts(self, state: str) -> list[dict[str, str]]:
        """Return the labels of the alerts in a state, ``firing`` or ``pending``."""
        return [series["metric"] for series in self.query(f'ALERTS{{alertstate="{state}"}}')]

    def firing(self) -> set[tuple[str, str]]:
        """Return the alerts that fire, with their instance (or area)."""
        labels = self.alerts("firing")
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
