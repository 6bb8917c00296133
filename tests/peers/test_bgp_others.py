"""The daemon between GoBGP and ExaBGP: sessions with keys, both families, tables and bandwidths.

``make test-bgp-peers`` unpacks Debian's ``gobgpd`` and installs ExaBGP below ``build/bgp-peers``;
neither runs as a service. Without them these tests are skipped.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fared.extensions.lab.namespaces import Netns
from tests.live.daemons import REPOSITORY, Live
from tests.waiting import wait_for

PROGRAMS = REPOSITORY / "build" / "bgp-peers"
GOBGP, EXABGP = PROGRAMS / "usr/bin", PROGRAMS / "exabgp/bin/exabgp"
pytestmark = [
    pytest.mark.netns,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (EXABGP.exists() and (GOBGP / "gobgpd").exists()), reason="make test-bgp-peers"
    ),
]

OURS, NUMBERS = 65001, {"gobgp": 65002, "exabgp": 65003}
PATIENCE = 30.0
MANY = 400 if os.environ.get("FARED_TEST_SOAK") else 40
SHARED = "10.50.0.0/24"
OWN = "10.40.0.0/24"
RATES = {"gobgp": 1.25e9, "exabgp": 3.125e9}
"""Of the links to both, bytes/s: 10 and 25 Gbit/s."""
_DUMP = """#!{}
import sys
with open("{}", "w") as file:
    for line in sys.stdin:
        file.write(line)
        file.flush()
"""
"""Writes to a file what ExaBGP reports."""


def address(name: str, family: int, end: int) -> str:
    place = {"gobgp": 1, "exabgp": 2}[name]
    return f"10.9.{place}.{end}" if family == 4 else f"fd00:{place}::{end}"


def own(name: str) -> set[str]:
    """What a peer announces."""
    second = {"gobgp": 20, "exabgp": 30}[name]
    ipv4 = {f"10.{second}.{n}.0/24" for n in range(MANY)}
    return ipv4 | {f"fd00:{second}:{n + 1:x}::/64" for n in range(MANY)}


def gobgp_toml() -> str:
    head = f'[global.config]\nas = {NUMBERS["gobgp"]}\nrouter-id = "10.9.1.2"\n'
    return head + "".join(map(_gobgp_neighbor, (4, 6)))


def _gobgp_neighbor(family: int) -> str:
    return f"""[[neighbors]]
[neighbors.config]
neighbor-address = "{address("gobgp", family, 1)}"
peer-as = {OURS}
auth-password = "of-gobgp"
[neighbors.timers.config]
connect-retry = 1
hold-time = 9
keepalive-interval = 3
[[neighbors.afi-safis]]
[neighbors.afi-safis.config]
afi-safi-name = "ipv{family}-unicast"
"""


def exabgp_conf(dump: Path) -> str:
    script = dump.with_suffix(".py")
    script.write_text(_DUMP.format(sys.executable, dump))
    script.chmod(0o755)
    parts = [f"process dump {{ run {script}; encoder json; }}\n"]
    for family in (4, 6):
        here, mine = address("exabgp", family, 1), address("exabgp", family, 2)
        routes = [one for one in sorted(own("exabgp")) if (":" in one) is (family == 6)]
        static = [f"route {one} next-hop {mine};" for one in routes]
        if family == 4:
            # 2.5 Gbit/s, transitive, AS 65003
            value = "extended-community [ 0x0004FDEB4D9502F9 ]"
            static.append(f"route {SHARED} next-hop {mine} {value};")
        parts.append(f"""neighbor {here} {{
  router-id 10.9.2.2; local-address {mine}; local-as {NUMBERS["exabgp"]}; peer-as {OURS};
  md5-password "of-exabgp"; hold-time 9;
  family {{ ipv{family} unicast; }}
  api {{ processes [ dump ]; receive {{ parsed; update; }} }}
  static {{ {" ".join(static)} }}
}}
""")
    return "".join(parts)


def config() -> dict[str, Any]:
    neighbors = {
        address(name, family, 2): {
            "remote-as": NUMBERS[name],
            "address-families": [f"ipv{family}"],
            "import": ["all"],
            "export": ["all"],
            "authentication": {"key": f"of-{name}"},
        }
        for name in NUMBERS
        for family in (4, 6)
    }
    return {
        "router-id": "10.9.1.1",
        "interfaces": {"gobgp": {"bandwidth": "10G"}, "exabgp": {"bandwidth": "25G"}},
        "bgp": {"as": OURS, "networks": [OWN], "neighbors": neighbors},
    }


class Site:
    """Three namespaces in a row, ours in the middle."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        prefix = f"bgo{secrets.token_hex(3)}"
        self.spaces = {name: Netns.create(f"{prefix}{name}") for name in ("test", *NUMBERS)}
        for name in NUMBERS:
            far = self.spaces[name]
            line = f"link add {name} type veth peer name eth0 netns {far.name}"
            self.spaces["test"].batch("ip", [line, *self._up(name, name, 1)])
            far.batch("ip", ["link set lo up", *self._up(name, "eth0", 2)])
        self.daemon = Live(self.spaces["test"], directory / "fared", config())
        self.dump = directory / "dump.json"
        self.processes: list[subprocess.Popen[bytes]] = []

    @staticmethod
    def _up(name: str, interface: str, end: int) -> list[str]:
        return [
            f"addr add {address(name, 4, end)}/24 dev {interface}",
            f"addr add {address(name, 6, end)}/64 dev {interface} nodad",
            f"link set {interface} up",
        ]

    def start(self) -> None:
        self.daemon.start()
        (self.directory / "gobgp.toml").write_text(gobgp_toml())
        command = [str(GOBGP / "gobgpd"), "-f", str(self.directory / "gobgp.toml")]
        self._start("gobgp", command)
        wait_for(lambda: self.gobgp("neighbor") is not None, PATIENCE, "gobgpd")
        for one in sorted(own("gobgp")):
            self.gobgp("global", "rib", "add", one, "-a", "ipv6" if ":" in one else "ipv4")
        self.gobgp("global", "rib", "add", SHARED, "origin", "igp", "-a", "ipv4")
        (self.directory / "exabgp.conf").write_text(exabgp_conf(self.dump))
        command = ["env", "exabgp.daemon.user=root", str(EXABGP)]
        self._start("exabgp", [*command, str(self.directory / "exabgp.conf")])

    def _start(self, name: str, command: list[str]) -> None:
        log = self.directory / f"{name}.log"
        self.processes.append(self.spaces[name].start(command, log))

    def gobgp(self, *words: str) -> Any | None:
        done = self.spaces["gobgp"].run([str(GOBGP / "gobgp"), *words, "-j"], check=False)
        if done.returncode:
            return None
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def of_gobgp(self) -> dict[str, list[dict[str, Any]]]:
        """What GoBGP has learnt: attributes by prefix."""
        found = {}
        for family in ("ipv4", "ipv6"):
            table = self.gobgp("global", "rib", "-a", family) or {}
            for prefix, paths in table.items():
                for path in paths:
                    attributes = path["attrs"]
                    if any(one["type"] == 2 and one["as_paths"] for one in attributes):
                        found[prefix] = attributes
        return found

    def of_exabgp(self) -> dict[str, dict[str, Any]]:
        """What ExaBGP has received: attributes by prefix."""
        found: dict[str, dict[str, Any]] = {}
        text = self.dump.read_text() if self.dump.exists() else ""
        for line in text.splitlines():
            try:
                message = json.loads(line)["neighbor"]["message"]["update"]
            except (ValueError, KeyError):
                continue
            for hops in message.get("announce", {}).values():
                for routes in hops.values():
                    for route in routes:
                        found[route["nlri"]] = message.get("attribute", {})
        return found

    def kernel(self) -> set[str]:
        """The prefixes of BGP in our kernel."""
        space = self.daemon.netns
        found = (space.ip("-j", way, "route", "show", "proto", "201") for way in ("-4", "-6"))
        return {route["dst"] for text in found for route in json.loads(text)}

    def close(self) -> None:
        self.daemon.kill()
        for process in self.processes:
            process.kill()
            process.wait()
        for space in self.spaces.values():
            space.delete()


def missing(site: Site) -> dict[str, int]:
    """How many prefixes each peer, and our kernel, does not have."""
    known = {
        "gobgp": set(site.of_gobgp()),
        "exabgp": set(site.of_exabgp()),
        "kernel": site.kernel(),
    }
    wanted = {"gobgp": own("exabgp") | {OWN}, "exabgp": own("gobgp") | {OWN}}
    wanted["kernel"] = own("gobgp") | own("exabgp") | {SHARED}
    lacks = {name: len(wanted[name] - known[name]) for name in known}
    return {name: count for name, count in lacks.items() if count}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("bgp-others"))
    try:
        made.start()
        wait_for(
            lambda: not missing(made), PATIENCE, lambda: f"missing: {missing(made)}", pause=0.5
        )
        yield made
    finally:
        made.close()


def test_each_peer_has_what_the_other_announces_over_both_families(site: Site) -> None:
    assert missing(site) == {}
    assert set(site.of_gobgp()) == own("exabgp") | {OWN}
    assert set(site.of_exabgp()) >= own("gobgp") | {OWN}


def test_weights_follow_what_is_told_and_own_links(site: Site) -> None:
    """ExaBGP tells 2.5 Gbit/s of the shared prefix, GoBGP nothing: its link of 10 counts."""

    def weights() -> dict[str, int]:
        found = [one for one in site.daemon.show("routes")["routes"] if one["prefix"] == SHARED]
        return {hop["interface"]: hop["weight"] for one in found for hop in one["nexthops"]}

    wait_for(lambda: len(weights()) == 2, PATIENCE, lambda: f"two next hops: {weights()}")
    assert weights() == {"gobgp": 4, "exabgp": 1}


def test_peers_are_told_the_lesser_of_paths_and_links(site: Site) -> None:
    """``min(P, C)``: what comes over 10 Gbit/s is told as that, though 25 lead to ExaBGP."""
    to_exabgp = site.of_exabgp()["10.20.3.0/24"]
    assert bandwidths(to_exabgp) == [RATES["gobgp"]]
    to_gobgp = site.of_gobgp()["10.30.3.0/24"]
    (communities,) = [one["value"] for one in to_gobgp if one["type"] == 16]
    (value,) = [one["bandwidth"] for one in communities if one["subtype"] == 4]
    assert value == RATES["gobgp"]


def bandwidths(attributes: dict[str, Any]) -> list[float]:
    """The Link Bandwidth values among the attributes that ExaBGP shows."""
    found = []
    for one in attributes.get("extended-community", []):
        raw = one["value"].to_bytes(8, "big")
        if raw[:2] in (b"\0\4", b"\x40\4"):
            found.append(struct.unpack(">f", raw[4:])[0])
    return found
