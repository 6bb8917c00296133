"""A real Prometheus scrapes a lab: all expressions have data, and each alert fires for its cause
and falls silent after. Some alerts run always, the others with FARED_TEST_SOAK=1."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from fared.core.units import parse_bandwidth
from fared.extensions.ina.slots.packet import DEFAULT_PORT, Header, PacketKind, encode_header
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.namespaces import Netns
from fared.extensions.lab.waiting import await_paths
from monitoring.scraping import Prometheus, board_expressions, rule_expressions
from tests.ina.lab_jobs import Jobs, same
from tests.lab.error_counters import Interface
from tests.lab.stream import Stream
from tests.lab.two_leaves import ROUTERS, rewrite_config, topology
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.netns,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is missing"),
]
DAMPING = {"half-life": "2s", "suppress": 1500, "reuse": 750, "maximum": "6s"}
"""Two flaps suppress the link, for a few seconds."""
PATIENCE = 40.0
ROUTE = "10.0.2.0/24"


class Lab:
    """The fabric, and the Prometheus that scrapes it."""

    def __init__(self, fabric: Fabric, prometheus: Prometheus, counters: Interface) -> None:
        self.fabric, self.prometheus, self.counters = fabric, prometheus, counters

    def configure(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        rewrite_config(self.fabric.node(name), change)

    @contextmanager
    def alert(self, name: str, instance: str) -> Iterator[None]:
        """Inside, there is a cause: the alert fires. Before and after there is none: it is silent.

        What a former cause raised may still fire.
        """
        at = (name, instance)
        wait_for(lambda: at not in self.firing(), PATIENCE, f"{name} is silent", pause=0.3)
        yield
        wait_for(lambda: self.silent(name), PATIENCE, f"{name} is silent", pause=0.3)
        wait_for(self.calm, PATIENCE, "nothing fires", pause=0.3)

    def fires(self, name: str, instance: str) -> None:
        wait_for(
            lambda: (name, instance) in self.prometheus.firing(),
            PATIENCE,
            f"{name} fires for {instance}",
            pause=0.3,
        )

    def silent(self, name: str) -> bool:
        return name not in {alert for alert, _ in self.firing()}

    def calm(self) -> bool:
        """Whether nothing fires, but for what a busy machine causes."""
        return {alert for alert, _ in self.firing()} <= {"FaredLoopLag"}

    def firing(self) -> set[tuple[str, str]]:
        return self.prometheus.firing()


def summing(text: str) -> str:
    """The same fabric, with routers that sum."""
    document = yaml.safe_load(text)
    for name in ROUTERS:
        document["topology"]["nodes"][name]["labels"]["fared-lab.ina"] = "on"
    return yaml.safe_dump(document)


def speaking(
    name: str, other: str, networks: Sequence[str] = (), **more: Any
) -> Callable[[dict[str, Any]], None]:
    """Run BGP with another router, too, else without a route: the board has panels of it."""
    neighbors = {other: {"import": "none", "export": "none", **more}}
    number = 65000 + ROUTERS.index(name)
    bgp = {"as": number, "networks": [*networks], "neighbors": neighbors}
    return lambda config: config.update(bgp=bgp)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    directory = tmp_path_factory.mktemp("monitoring")
    path = directory / "monitoring.clab.yml"
    path.write_text(summing(topology("monitoring", rate="100M")))
    with (
        Interface(directory / "counters", "L2") as counters,
        Fabric.from_file(path, directory=directory / "state") as fabric,
    ):
        assert await_paths(fabric, 30) is not None
        with Prometheus(fabric, directory) as prometheus:
            running = Lab(fabric, prometheus, counters)
            # Four buckets: weights of 1:4 become 1:3.
            fib = {"group-type": "resilient", "buckets": 4}
            running.configure("L1", lambda config: config.update(fib=fib))
            # S2 watches its link to L2, with counters that a test makes sick.
            watched = {"mode": "act", "window": "2s", "hold-down": "2s", "damping": DAMPING}
            watched["steps"] = [{"ratio": "0.1%", "share": "25%"}]
            health = {"counters": str(counters.file), "interfaces": {counters.name: watched}}
            running.configure("S2", lambda config: config.update({"link-health": health}))
            for name, other in (("L1", "S2"), ("S2", "L1")):
                running.configure(name, speaking(name, other))
                fabric.stop_node(name)
                fabric.start_node(name)
            assert await_paths(fabric, 30) is not None
            wait_for(lambda: prometheus.value("count(fared_ready == 1)") == [4], 30, "scraped")
            Jobs(fabric).create("train")
            waits = "count(fared_ina_wait_seconds)"
            wait_for(lambda: prometheus.value(waits), 30, "the job is scraped", pause=0.3)
            wait_for(running.calm, 60, "nothing fires", pause=0.5)
            yield running


def test_every_expression_of_the_board_has_data(lab: Lab):
    """Quantiles need a change within the window, so one link is weakened and restored meanwhile."""
    panels = board_expressions("timeseries", "stat")
    expressions = [(title, e) for title, many in panels.items() for e, _ in many]
    assert len(expressions) > 30
    missing = dict.fromkeys(expressions)
    rates = iter(range(1000))

    def all_have() -> bool:
        rate = "90M" if next(rates) % 2 else "80M"
        lab.fabric.shape("S1", "L2", parse_bandwidth(rate))
        for title, expression in list(missing):
            values = lab.prometheus.value(expression)
            if values and not all(math.isnan(value) for value in values):
                del missing[title, expression]
        return not missing

    try:
        wait_for(all_have, PATIENCE, lambda: f"data of {list(missing)}", pause=0.5)
    finally:
        lab.fabric.shape("S1", "L2", parse_bandwidth("100M"))


def test_every_recorded_series_has_data_and_every_alert_reads_metrics_that_exist(lab: Lab):
    names = {name for expression in rule_expressions().values() for name in metrics(expression)}
    assert {"fared_link_up", "fared_neighbor_up", "fared_lsdb_checksum"} <= names
    assert [name for name in sorted(names) if not lab.prometheus.value(f"count({name})")] == []


def metrics(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:fared[_:][a-z_:]+|up\b)", expression.replace('"fared"', "")))


def test_all_alerts_have_a_test_here():
    source = Path(__file__).read_text()
    alerts = [name for name in rule_expressions() if not name.startswith("fared:")]
    assert [name for name in alerts if f'alert("{name}"' not in source] == []


@pytest.mark.soak
def test_a_router_that_ends_is_down(lab: Lab):
    with lab.alert("FaredDown", "S2"):
        lab.fabric.stop_node("S2")
        lab.fires("FaredDown", "S2")
        lab.fabric.start_node("S2")


def test_a_link_that_fails_is_reported_at_both_ends_until_it_is_back(lab: Lab):
    with lab.alert("FaredLinkDown", "L1"), lab.alert("FaredLinkDown", "S1"):
        lab.fabric.fail("S1", "L1")
        lab.fires("FaredLinkDown", "L1")
        lab.fires("FaredLinkDown", "S1")
        assert ("FaredAdjacencyLost", "L1") not in lab.firing()
        down = shown_as_wrong(lab)
        assert {("L1", "S1", "down"), ("S1", "L1", "down")} == down
        lab.fabric.heal("S1", "L1")


def shown_as_wrong(lab: Lab) -> set[tuple[str, str, str]]:
    """Router, interface and what is wrong, as the board has it."""
    expressions = board_expressions("table")["Links down or derated"]
    rows = [one["metric"] for e, _ in expressions for one in lab.prometheus.query(e)]
    return {(row["instance"], row["interface"], row["what"]) for row in rows}


@contextmanager
def dropped(netns: Netns, hook: str, packets: str) -> Iterator[None]:
    """Inside, a router drops packets."""
    chain = f"add chain ip lossy c {{ type filter hook {hook} priority 0 ; }}"
    script = f"add table ip lossy\n{chain}\nadd rule ip lossy c ip protocol ospf {packets} drop\n"
    netns.run(["nft", "-f", "-"], stdin=script)
    try:
        yield
    finally:
        netns.run(["nft", "delete", "table", "ip", "lossy"])


def test_an_adjacency_that_is_lost_while_the_link_is_up_is_reported_until_it_is_back(lab: Lab):
    s1 = lab.fabric.node("S1").netns
    with lab.alert("FaredAdjacencyLost", "L1"), dropped(s1, "output", 'oifname "L1"'):
        lab.fires("FaredAdjacencyLost", "L1")
        assert "FaredLinkDown" not in {alert for alert, _ in lab.firing()}
        assert ("L1", "S1", "no adjacency") in shown_as_wrong(lab)


@pytest.mark.soak
def test_an_adjacency_that_flaps_is_reported(lab: Lab):
    def full() -> bool:
        document = json.loads(lab.fabric.node("L1").cli("show", "neighbors", "--json"))
        return [one["state"] for one in document["neighbors"]] == ["Full", "Full"]

    with lab.alert("FaredAdjacencyFlapping", "L1"):
        for _ in range(12):
            lab.fabric.fail("S1", "L1")
            lab.fabric.heal("S1", "L1")
            wait_for(full, 15, "both are full again", pause=0.1)
            if ("FaredAdjacencyFlapping", "L1") in lab.firing():
                break
        lab.fires("FaredAdjacencyFlapping", "L1")


@pytest.mark.soak
def test_a_router_that_receives_no_updates_has_another_database(lab: Lab):
    """Its hellos and acknowledgments pass: its adjacencies remain."""
    with lab.alert("FaredDatabasesDiffer", "0.0.0.0"):
        with dropped(lab.fabric.node("L1").netns, "input", "@th,8,8 4"):
            lab.fabric.shape("S1", "L2", parse_bandwidth("90M"))
            lab.fires("FaredDatabasesDiffer", "0.0.0.0")
        lab.fabric.shape("S1", "L2", parse_bandwidth("100M"))


@pytest.mark.soak
def test_a_router_that_is_cut_off_is_not_compared_with_the_others(lab: Lab):
    with lab.alert("FaredLinkDown", "L1"):
        for spine in ("S1", "S2"):
            lab.fabric.fail(spine, "L1")
        lab.fires("FaredLinkDown", "L1")
        parts = 'count(count by (lowest) (fared_lsdb_checksum{area="0.0.0.0"}))'
        wait_for(lambda: lab.prometheus.value(parts) == [2], PATIENCE, "two parts", pause=0.3)
        assert "FaredDatabasesDiffer" not in {alert for alert, _ in lab.firing()}
        for spine in ("S1", "S2"):
            lab.fabric.heal(spine, "L1")


def test_a_degraded_link_leads_to_weights_apart_from_equal_and_few_buckets_to_an_error(lab: Lab):
    with lab.alert("FaredWeightsApartFromEqual", "L1"), lab.alert("FaredQuantizationError", "L1"):
        lab.fabric.shape("S1", "L2", parse_bandwidth("25M"))
        lab.fires("FaredWeightsApartFromEqual", "L1")
        lab.fires("FaredQuantizationError", "L1")
        lab.fabric.shape("S1", "L2", parse_bandwidth("100M"))


def test_a_link_with_errors_is_reported_and_derated(lab: Lab):
    with lab.alert("FaredLinkErrors", "S2"), lab.alert("FaredLinkDerated", "S2"):
        lab.counters.sick = True
        lab.fires("FaredLinkErrors", "S2")
        lab.fires("FaredLinkDerated", "S2")
        lab.counters.sick = False


@pytest.mark.soak
def test_a_link_that_is_drained_is_reported(lab: Lab):
    with lab.alert("FaredLinkDerated", "L1"):
        lab.fabric.node("L1").cli("drain", "interface", "S1", "--share", "25%")
        lab.fires("FaredLinkDerated", "L1")
        lab.fabric.node("L1").cli("undrain", "interface", "S1")


@pytest.mark.soak
def test_a_link_that_flaps_is_suppressed_until_it_is_calm(lab: Lab):
    with lab.alert("FaredLinkSuppressed", "S2"):
        for _ in range(3):
            lab.fabric.fail("L2", "S2")
            wait_for(lambda: not carrier(lab, "S2", "L2"), 5, "no carrier")
            lab.fabric.heal("L2", "S2")
            wait_for(lambda: carrier(lab, "S2", "L2"), 5, "a carrier")
        lab.fires("FaredLinkSuppressed", "S2")


def carrier(lab: Lab, name: str, interface: str) -> bool:
    return "LOWER_UP" in lab.fabric.node(name).netns.ip("link", "show", interface)


@pytest.mark.soak
def test_a_leaf_whose_uplink_gets_slower_is_oversubscribed(lab: Lab):
    with lab.alert("FaredOversubscribed", "L1"):
        lab.fabric.shape("L1", "S1", parse_bandwidth("25M"))
        lab.fires("FaredOversubscribed", "L1")
        lab.fabric.shape("L1", "S1", parse_bandwidth("100M"))


@pytest.mark.soak
def test_a_link_that_is_full_is_reported(lab: Lab):
    with lab.alert("FaredLinkFull", "L1"):
        for spine in ("S1", "S2"):
            lab.fabric.shape("L1", spine, parse_bandwidth("1M"))
        with Stream.between(lab.fabric, "h1", "h2", flows=64, rate=8000):
            lab.fires("FaredLinkFull", "L1")
        for spine in ("S1", "S2"):
            lab.fabric.shape("L1", spine, parse_bandwidth("100M"))


@pytest.mark.soak
def test_another_program_that_deletes_a_route_is_reported(lab: Lab):
    with lab.alert("FaredKernelDrift", "L1"):
        lab.fabric.node("L1").netns.ip("route", "del", ROUTE, "proto", "201")
        lab.fires("FaredKernelDrift", "L1")


@pytest.mark.soak
def test_a_daemon_that_got_no_cpu_has_a_late_loop(lab: Lab):
    (pid,) = (p.pid for p in lab.fabric.node("L2").processes if p.name == "fared")
    with lab.alert("FaredLoopLag", "L2"):

        def late() -> bool:
            os.kill(pid, signal.SIGSTOP)
            try:
                with pytest.raises(subprocess.TimeoutExpired):
                    subprocess.run(("sleep", "5"), timeout=2.5, check=False)
            finally:
                os.kill(pid, signal.SIGCONT)
            return ("FaredLoopLag", "L2") in lab.firing()

        wait_for(late, PATIENCE, "FaredLoopLag fires", pause=1.0)


@pytest.mark.soak
def test_a_file_that_is_refused_is_reported_until_it_is_accepted(lab: Lab):
    with lab.alert("FaredConfigRefused", "S1"):
        lab.configure("S1", lambda config: config.update(nonsense=1))
        with pytest.raises(LabError):
            lab.fabric.node("S1").cli("config", "reload")
        lab.fires("FaredConfigRefused", "S1")
        lab.configure("S1", lambda config: config.pop("nonsense"))
        lab.fabric.node("S1").cli("config", "reload")


@pytest.mark.soak
def test_a_configuration_that_waits_for_its_confirmation_is_reported(lab: Lab):
    node = lab.fabric.node("S2")
    with lab.alert("FaredConfigUnconfirmed", "S2"):
        node.cli("config", "apply", str(node.directory / "fared.yaml"), "--confirm", "5m")
        lab.fires("FaredConfigUnconfirmed", "S2")
        node.cli("config", "confirm")


@pytest.mark.soak
def test_a_bgp_neighbor_near_its_limit_of_prefixes_is_reported(lab: Lab):
    """S2 advertises one prefix to L1, which accepts one."""

    def applied(networks: list[str], **accepts: Any) -> None:
        for name, other in (("S2", "L1"), ("L1", "S2")):
            more = accepts if name == "L1" else {"export": "own"}
            change = speaking(name, other, networks=networks if name == "S2" else [], **more)
            lab.configure(name, change)
            lab.fabric.node(name).cli("config", "reload")

    with lab.alert("FaredBgpPrefixesNearLimit", "L1"):
        applied(["198.18.7.0/24"], **{"import": "all", "maximum-prefixes": 1})
        lab.fires("FaredBgpPrefixesNearLimit", "L1")
        applied([])


@pytest.mark.soak
def test_a_full_database_is_reported(lab: Lab):
    """L2 advertises more externals than L1 accepts."""
    static = [f"198.18.{number}.0/32" for number in range(130)]
    with lab.alert("FaredDatabaseFull", "L1"):
        lab.configure("L1", lambda config: config["ospf"].update({"max-lsas": 100}))
        lab.configure("L2", lambda config: config["ospf"].update(redistribute={"static": {}}))
        for name in ("L1", "L2"):
            lab.fabric.node(name).cli("config", "reload")
        lab.fabric.node("L2").netns.batch("ip", [f"route add blackhole {one}" for one in static])
        lab.fires("FaredDatabaseFull", "L1")
        lab.fabric.node("L2").netns.batch("ip", [f"route del blackhole {one}" for one in static])
        lab.configure("L1", lambda config: config["ospf"].pop("max-lsas"))
        lab.fabric.node("L1").cli("config", "reload")


@pytest.mark.soak
def test_a_router_that_lacks_its_routes_is_not_ready(lab: Lab):
    """No neighbor answers, so start-up waits for a dead interval."""
    with lab.alert("FaredNotReady", "L1"):
        for name in ("S1", "S2", "L1"):
            lab.fabric.stop_node(name)
        lab.fabric.start_node("L1")
        lab.fires("FaredNotReady", "L1")
        for name in ("S1", "S2"):
            lab.fabric.start_node(name)
        assert await_paths(lab.fabric, 30) is not None
    Jobs(lab.fabric).create("train")  # L1 had made the job, which has ended with it


@pytest.mark.soak
def test_a_process_that_sums_is_missed_when_it_ends(lab: Lab):
    with lab.alert("FaredInaDown", "S2"):
        Jobs(lab.fabric).kill("S2", "fared-ina")
        lab.fires("FaredInaDown", "S2")
        lab.fabric.stop_node("S2")
        lab.fabric.start_node("S2")
        assert await_paths(lab.fabric, 30) is not None


@pytest.mark.soak
def test_a_job_that_begins_again_and_again_is_reported(lab: Lab):
    with lab.alert("FaredInaEpochs", "L2"):
        for _ in range(8):
            lab.fabric.fail("S1", "L1")
            lab.fabric.heal("S1", "L1")
            assert await_paths(lab.fabric, 30) is not None
            if ("FaredInaEpochs", "L2") in lab.firing():
                break
        lab.fires("FaredInaEpochs", "L2")


def test_a_rank_that_a_job_waits_for_and_a_forged_result_are_reported(lab: Lab, tmp_path: Path):
    """h2 falls silent in a call. Somebody at S1 forges results meanwhile, with its address.

    The job is made again first: no rank joins one from before fared-ina of its leaf began again.
    """
    jobs, release = Jobs(lab.fabric), tmp_path / "release"
    jobs.end("train")
    wait_for(lambda: not any(jobs.shown(name)["jobs"] for name in ROUTERS), 20, "no job is left")
    jobs.create("train")
    with lab.alert("FaredInaJobWaits", "S1"), lab.alert("FaredInaWrongSum", "L1"):
        jobs.start("train", calls=2, held=[0, 1], release=str(release), timeout=120.0)
        lab.fires("FaredInaJobWaits", "S1")
        job = jobs.job("train")
        at, root = next(
            (at, tree["root"]) for at, tree in enumerate(job["trees"]) if tree["hostname"] == "S1"
        )
        header = Header(
            PacketKind.RESULT, job["job_id"], at, job["epoch"], 0, 0b11, job["payload"], control=1
        )
        forge(lab.fabric.node("S1").netns, root, job["workers"][0], header)
        lab.fires("FaredInaWrongSum", "L1")
        release.touch()
    assert same(jobs.results("train"))


def forge(netns: Netns, router: str, worker: dict[str, Any], header: Header) -> None:
    """Send a packet of zeros to a worker, from the address and port of a router's fared-ina."""
    data = encode_header(header) + bytes(header.size)
    udp = struct.pack("!HHHH", DEFAULT_PORT, worker["port"], 8 + len(data), 0)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_UDP, 0)
    ends = socket.inet_aton(router) + socket.inet_aton(worker["address"])
    with netns.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sock:
        sock.sendto(ip + ends + udp + data, (worker["address"], 0))
