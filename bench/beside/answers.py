"""Large answers: ``show routes --json`` with 10,000 routes, beside FRR, and what it costs the loop.

A (BIRD) originates 10,000 externals, which B, the daemon under test, learns. Measured are the
seconds of one answer, from the command to its last byte, with one client and with eight at once,
and the daemon's memory before and after. Of fared also the slowest small answer, alone
and while another client asks for all routes without pause: how long the event loop is held.
``python -m bench answers 100000`` sets the number of routes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.beside.externals import ZEBRA, await_route, learn, row_of, usage
from fared.extensions.lab import sandbox
from fared.extensions.lab.fabric import Fabric
from fared.management.api.client import ControlClient

ROUTES = 10_000
CLIENTS = 8
ANSWERS = 5
LOAD_SECONDS = 10.0
COMMANDS = {"fared": ["show", "routes", "--json"], "frr": ["show", "ip", "route", "json"]}


def answer(fabric: Fabric, kind: str) -> tuple[float, int]:
    """Ask B for all its routes; return the seconds and the bytes of the answer."""
    node = fabric.node("B")
    began = time.monotonic()
    text = node.cli(*COMMANDS[kind])
    return time.monotonic() - began, len(text)


def slowest_small_answer(fabric: Fabric) -> float:
    """The slowest of some thousand answers of a few bytes, in seconds."""
    client = ControlClient(str(fabric.node("B").directory / "fared.sock"))
    slowest, until = 0.0, time.monotonic() + LOAD_SECONDS
    while time.monotonic() < until:
        began = time.monotonic()
        client.request("show memory")
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.005)
    return slowest


def slowest_under_load(fabric: Fabric) -> float:
    """The same while another client asks for all routes without pause."""
    over = threading.Event()

    def load() -> None:
        while not over.is_set():
            answer(fabric, "fared")

    thread = threading.Thread(target=load)
    thread.start()
    try:
        return slowest_small_answer(fabric)
    finally:
        over.set()
        thread.join()


def measure(kind: str, count: int) -> dict[str, Any]:
    """Seconds of an answer, for one client and for eight, and megabytes before and after."""
    with row_of(kind) as fabric:
        await_route(fabric, "B")
        if learn(fabric, count, "B") is None:
            raise RuntimeError("B did not learn all routes")
        _, before = usage(fabric, "B")
        alone = [answer(fabric, kind) for _ in range(ANSWERS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            crowd = list(pool.map(lambda _: answer(fabric, kind)[0], range(CLIENTS)))
        found: dict[str, Any] = {
            "seconds": statistics.median(seconds for seconds, _ in alone),
            "bytes": alone[0][1],
            "seconds_of_eight": statistics.median(crowd),
        }
        if kind == "fared":
            found["small_answer_alone"] = slowest_small_answer(fabric)
            found["small_answer_under_load"] = slowest_under_load(fabric)
        found["megabytes"] = [before, usage(fabric, "B")[1]]
        return found


def main() -> int:
    """Print a line for each daemon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("routes", nargs="?", type=int, default=ROUTES)
    chosen = parser.parse_args()
    kinds = ["fared", *(["frr"] if shutil.which(ZEBRA) else [])]

    def run() -> int:
        for kind in kinds:
            print(chosen.routes, kind, json.dumps(measure(kind, chosen.routes)), flush=True)
        return 0

    return sandbox.run(run)
