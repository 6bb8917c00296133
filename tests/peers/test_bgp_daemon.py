"""The daemon between FRR and BIRD over BGP: what each of both tells reaches kernel and other peer.

FRR has an unnumbered session, which carries both families; BIRD one for each family, with TTL
security. All have keys. The numbers of prefixes are larger with ``FARED_TEST_SOAK=1``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.management.api.client import DaemonRefusedError, DaemonUnreachableError
from tests.live.daemons import Live, run_program
from tests.peers.bgp_site import BIRD, FRR, OURS, BgpSite
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

PREFIXES = 10_000 if os.environ.get("FARED_TEST_SOAK") else 300
PATIENCE = 120.0 if os.environ.get("FARED_TEST_SOAK") else 40.0
KEYS = {"frr": "of-frr", "bird": "of-bird"}
WIDE = ("fd00:2::1", "fd00:2::2")
_NUMBER = re.compile(r"(\d+) routes? ")


def prefixes(name: str) -> set[str]:
    """What a peer announces: of each family a half."""
    second = {"frr": 20, "bird": 21}[name]
    numbers = [(n >> 8, n & 255) for n in range(PREFIXES // 2)]
    ipv4 = {f"10.{second + 4 * high}.{low}.0/24" for high, low in numbers}
    return ipv4 | {f"fd{second}:{high:x}:{low + 1:x}::/48" for high, low in numbers}


def of_family(found: set[str], family: int) -> list[str]:
    return sorted(one for one in found if (":" in one) is (family == 6))


def frr_text() -> str:
    own = prefixes("frr")
    networks = {f: "\n".join(f"  network {p}" for p in of_family(own, f)) for f in (4, 6)}
    return f"""router bgp {FRR}
 bgp router-id 10.9.1.2
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor eth0 interface remote-as external
 neighbor eth0 password {KEYS["frr"]}
 neighbor eth0 timers 3 9
 neighbor eth0 timers connect 1
 address-family ipv4 unicast
{networks[4]}
 address-family ipv6 unicast
  neighbor eth0 activate
{networks[6]}
"""


def bird_text() -> str:
    parts = []
    for family, (ours, theirs) in ((4, ("10.9.2.1", "10.9.2.2")), (6, WIDE)):
        routes = "\n".join(f"  route {p} blackhole;" for p in of_family(prefixes("bird"), family))
        parts.append(f"""protocol static s{family} {{
  ipv{family};
{routes}
}}
protocol bgp b{family} {{
  local {theirs} as {BIRD};
  neighbor {ours} as {OURS};
  password "{KEYS["bird"]}"; ttl security on;
  connect delay time 1; connect retry time 1; error wait time 1, 2;
  ipv{family} {{ import all; export where source = RTS_STATIC; }};
}}
""")
    return "".join(parts)


def config() -> dict:
    every = {"import": ["all"], "export": ["own", "bgp"]}
    bird = {
        **every,
        "remote-as": BIRD,
        "ttl-security": True,
        "authentication": {"key": KEYS["bird"]},
    }
    frr = {**every, "remote-as": "external", "authentication": {"key": KEYS["frr"]}}
    return {
        "router-id": "10.9.1.1",
        "bgp": {
            "as": OURS,
            "graceful-restart": {"enabled": True, "restart-time": 60},
            "neighbors": {
                "frr": frr,
                "10.9.2.2": {**bird, "address-families": ["ipv4"]},
                WIDE[1]: {**bird, "address-families": ["ipv6"]},
            },
        },
    }


class Middle:
    """The site, and the daemon in its middle."""

    def __init__(self, directory: Path) -> None:
        self.site = BgpSite(directory, numbered=["bird"])
        test, bird = self.site.spaces["test"], self.site.spaces["bird"]
        test.ip("addr", "add", f"{WIDE[0]}/64", "dev", "bird", "nodad")
        bird.ip("addr", "add", f"{WIDE[1]}/64", "dev", "eth0", "nodad")
        self.daemon = Live(test, directory / "fared", config())
        self.recording = directory / "recording"
        self.daemon.arguments = ["--record", str(self.recording)]

    def start(self) -> None:
        self.site.start_frr(frr_text())
        self.site.start_bird(bird_text())
        self.daemon.start()

    def kernel(self) -> dict[str, set[str]]:
        """The prefixes that our kernel has of each peer, by their routes."""
        found: dict[str, set[str]] = {"frr": set(), "bird": set()}
        for family in ("-4", "-6"):
            listed = self.daemon.netns.ip("-N", "-j", family, "route", "show", "proto", "201")
            groups = self.daemon.netns.ip("-N", "-j", "nexthop")
            device = {one["id"]: one.get("dev") for one in json.loads(groups)}
            for route in json.loads(listed):
                name = route.get("dev") or device[route["nhid"]]
                found[name].add(route["dst"])
        return found

    def frr(self) -> set[str]:
        """Prefixes of BIRD in FRR's table."""
        found = set()
        for family in ("ipv4", "ipv6"):
            routes = self.site.vtysh(f"show bgp {family} unicast json").get("routes", {})
            path = f"{OURS} {BIRD}"
            found |= {p for p, ways in routes.items() if any(w.get("path") == path for w in ways)}
        return found

    def bird(self) -> set[str]:
        """Prefixes of FRR in BIRD's tables."""
        text = self.site.birdc("show route where source = RTS_BGP")
        return set(re.findall(r"^(\S+/\d+) +unicast", text, re.MULTILINE))

    def equal(self) -> bool:
        """Whether all tables are as they should be."""
        whole = {name: prefixes(name) for name in ("frr", "bird")}
        known = {"bird": self.frr(), "frr": self.bird()}
        return self.kernel() == whole == known

    def explain(self) -> str:
        kernel = {name: len(found) for name, found in self.kernel().items()}
        lines = self.daemon.log.read_text().splitlines()[-8:]
        return f"kernel {kernel} FRR {len(self.frr())} BIRD {len(self.bird())}\n" + "\n".join(lines)

    def settle(self, what: str) -> None:
        wait_for(self.equal, PATIENCE, lambda: f"equal tables {what}: {self.explain()}", pause=0.2)

    def close(self) -> None:
        self.daemon.kill()
        self.site.close()


@pytest.fixture(scope="module")
def middle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Middle]:
    made = Middle(tmp_path_factory.mktemp("bgp"))
    try:
        made.start()
        made.settle("after the start")
        yield made
    finally:
        made.close()


def test_peers_that_are_killed_come_back_with_their_tables(middle: Middle) -> None:
    for name, start in (("frr", middle.site.start_frr), ("bird", middle.site.start_bird)):
        middle.site.kill(name)
        wait_for(lambda n=name: not middle.kernel()[n], PATIENCE, f"routes of {name} are gone")
        start(frr_text() if name == "frr" else bird_text())
        middle.settle(f"after a restart of {name}")


def test_the_daemon_says_that_it_leaves_and_comes_back(middle: Middle) -> None:
    code, _ = middle.daemon.terminate()
    assert code == 0
    assert middle.kernel() == {"frr": set(), "bird": set()}
    # both know why: a NOTIFICATION came before the end of the connection
    told = "Last error: *Received: Administrative shutdown"
    wait_for(lambda: re.search(told, shown(middle)), 10.0, lambda: shown(middle))
    (peer,) = middle.site.vtysh("show bgp neighbors json").values()
    assert peer["lastResetDueTo"] == "BGP Notification received"
    middle.daemon.start()
    middle.settle("after a restart of the daemon")
    assert middle.daemon.complaints() == []


def shown(middle: Middle) -> str:
    return middle.site.birdc("show protocols all b4")


@pytest.mark.rfc("RFC 2918 §4")
def test_peers_that_ask_are_told_all_routes_again(middle: Middle) -> None:
    def told() -> int:
        found = re.search(r"Import updates: +(\d+)", shown(middle))
        assert found is not None
        return int(found[1])

    before = told()
    middle.site.birdc("reload in b4")
    whole = before + PREFIXES // 2
    wait_for(lambda: told() == whole, PATIENCE, lambda: f"{told()} updates, expected {whole}")
    middle.site.frr("clear bgp * soft in")
    middle.settle("after a refresh")


def test_strangers_are_refused_while_sessions_go_on(middle: Middle) -> None:
    """Thousands of connections cost no memory; a session that begins meanwhile comes up."""
    space, daemon = middle.site.spaces["bird"], middle.daemon
    space.ip("addr", "replace", "10.9.3.3/32", "dev", "eth0")
    daemon.netns.ip("route", "replace", "10.9.3.3", "dev", "bird")

    def refused() -> int:
        return daemon.counters()["sockets"].get("refused-no-neighbor", 0)

    before, resident = refused(), daemon.resident()
    middle.site.birdc("restart b4")
    for _ in range(20):
        with contextlib.ExitStack() as open_ones:
            for _ in range(100):
                sock = open_ones.enter_context(space.socket(socket.AF_INET, socket.SOCK_STREAM))
                sock.setblocking(False)
                sock.bind(("10.9.3.3", 0))
                sock.connect_ex(("10.9.2.1", 179))
    wait_for(lambda: refused() > before, 10.0, "strangers that are refused")
    middle.settle("beside strangers")
    assert daemon.resident() < resident + (4 << 20)
    assert sum(one["event"] == "connection-refused" for one in daemon.records()) <= 2


@pytest.mark.parametrize("planned", [True, False], ids=["planned", "crash"])
@pytest.mark.rfc("RFC 4724 §4")
def test_a_graceful_restart_changes_no_route_of_anybody(middle: Middle, planned: bool) -> None:
    """The connections end without a NOTIFICATION, and both peers keep what they were told."""
    spaces, directory = middle.site.spaces, middle.site.directory
    logs = {name: directory / f"routes-{name}-{planned}" for name in spaces}
    monitors = [spaces[name].start(["ip", "monitor", "route"], log) for name, log in logs.items()]
    before = middle.daemon.show("status")["started_at"]
    try:
        if planned:
            assert middle.daemon.cli("restart", "--graceful").returncode == 0
        else:
            middle.daemon.kill()
            middle.daemon.start()
        wait_for(lambda: restarted(middle, before), PATIENCE, "the next process is ready")
        middle.settle("after a graceful restart")
    finally:
        for monitor in monitors:
            monitor.terminate()
            monitor.wait()
    assert {name: log.read_text() for name, log in logs.items()} == dict.fromkeys(logs, "")


def restarted(middle: Middle, before: float) -> bool:
    """Whether another process answers, and has all routes."""
    try:
        status = middle.daemon.show("status")
    except (DaemonUnreachableError, DaemonRefusedError):
        return False
    return bool(status["ready"]) and status["started_at"] != before


def test_the_recording_of_streams_replays_and_has_no_key(middle: Middle) -> None:
    middle.site.birdc("disable b4")
    half = set(of_family(prefixes("bird"), 6))
    wait_for(lambda: middle.kernel()["bird"] == half, 20.0, "the routes of b4 are gone")
    middle.site.birdc("enable b4")
    middle.settle("when BIRD is back")
    done = run_program("fared-cli", "replay", str(middle.recording), "--json")
    document = json.loads(done.stdout)
    assert document["equal"] is True, document["difference"]
    assert document["routes"] == len(middle.daemon.show("routes")["routes"]) > 2 * PREFIXES
    written = b"".join(file.read_bytes() for file in middle.recording.iterdir())
    assert len(written) > 10_000
    assert not any(key.encode() in written for key in KEYS.values())
