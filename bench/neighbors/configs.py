"""Configurations and command lines of the device under test, by FRR, BIRD or fared.

They are those of the lab kinds, reduced: leaf 0 has many links and no hosts, and each peer runs
with the timers that make it fastest.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.neighbors.fabric import Fabric
from bench.neighbors.script import HELLO
from fared.core.ids import dotted, format_system_id

_FRR = Path("/usr/lib/frr")
LOCAL_AS = 65001
"""Of the device, in BGP."""


class Setup:
    """What is to run. ``kind``: frr, bird or fared; ``protocol``: ospf, isis or bgp (not BIRD)."""

    hello, dead = HELLO, 4 * HELLO

    def __init__(self, kind: str, protocol: str, fabric: Fabric, directory: Path) -> None:
        self.kind, self.protocol, self.fabric = kind, protocol, fabric
        self.name = f"{kind}-{protocol}" + ("-te" if fabric.te and kind != "fared" else "")
        self.directory = directory / self.name

    def configuration(self) -> dict[str, Any]:
        """Return the configuration of fared."""
        return fared_config(self)


def files(device: Setup) -> dict[str, str]:
    """Return the texts of its files, by name."""
    if device.kind == "fared":
        return {"fared.yaml": json.dumps(device.configuration())}
    if device.kind == "bird":
        return {"bird.conf": "\n".join(_bird(device)) + "\n"}
    lines = _LINES[device.protocol](device)
    te = [
        line
        for spine in range(device.fabric.spines if device.fabric.te else 0)
        for line in (f"interface s{spine}", " link-params", "  enable", " exit-link-params")
    ]
    return {
        "zebra.conf": "\n".join(["hostname leaf0", "no zebra nexthop kernel enable", *te]) + "\n",
        f"{_daemon(device)}.conf": "\n".join(lines) + "\n",
    }


def commands(device: Setup) -> Iterator[tuple[list[str], Path]]:
    """Yield the command line of each process, and the file that exists once it is ready."""
    here = device.directory
    if device.kind == "fared":
        program = [sys.executable, "-m", "fared", "-c", str(here / "fared.yaml")]
        yield program, here / "fared.sock"
        return
    if device.kind == "bird":
        control = here / "bird.ctl"
        yield ["bird", "-f", "-c", str(here / "bird.conf"), "-s", str(control)], control
        return
    for name in ("zebra", _daemon(device)):
        ready = here / "zserv" if name == "zebra" else here / f"{name}.vty"
        yield (
            [
                *(
                    str(_FRR / name),
                    "-f",
                    str(here / f"{name}.conf"),
                    "-i",
                    str(here / f"{name}.pid"),
                ),
                *("-z", str(here / "zserv"), "--vty_socket", str(here), "-P", "0"),
            ],
            ready,
        )


def _daemon(device: Setup) -> str:
    return f"{device.protocol}d"


def _net(device: Setup) -> str:
    return f"49.0000.{format_system_id(device.fabric.system(device.fabric.leaf(0)))}.00"


def _ospfd(device: Setup) -> Iterator[str]:
    for spine in range(device.fabric.spines):
        yield f"interface s{spine}"
        yield " ip ospf area 0"
        yield " ip ospf cost 10"
        yield " ip ospf network point-to-point"
        yield f" ip ospf hello-interval {device.hello}"
        yield f" ip ospf dead-interval {device.dead}"
        yield " ip ospf retransmit-interval 1"
    yield "interface lo"
    yield " ip ospf area 0"
    yield " ip ospf passive"
    yield "router ospf"
    yield f" ospf router-id {dotted(device.fabric.leaf(0))}"
    yield " maximum-paths 64"
    yield " timers throttle spf 0 50 500"
    yield " timers throttle lsa all 0"
    yield " timers lsa min-arrival 0"
    if device.fabric.te:
        yield " capability opaque"
        yield " mpls-te on"
        yield f" mpls-te router-address {dotted(device.fabric.leaf(0))}"


def _isisd(device: Setup) -> Iterator[str]:
    yield "router isis fab"
    yield " lsp-gen-interval 1"
    yield " spf-interval 1"
    yield (
        " spf-delay-ietf init-delay 0 short-delay 50 long-delay 500 holddown 1000 time-to-learn 500"
    )
    yield f" net {_net(device)}"
    yield " is-type level-2-only"
    yield " metric-style wide"
    for spine in range(device.fabric.spines):
        yield f"interface s{spine}"
        yield " ip router isis fab"
        yield " isis network point-to-point"
        yield " isis metric 10"
        yield " isis circuit-type level-2-only"
        yield f" isis hello-interval {device.hello}"
        yield " isis hello-multiplier 4"
    yield "interface lo"
    yield " ip router isis fab"
    yield " isis passive"


def _bgpd(device: Setup) -> Iterator[str]:
    """With the policy of fared's: everything is accepted, only own networks are told."""
    addresses = [dotted(device.fabric.addresses((n, 0))[0]) for n in range(device.fabric.spines)]
    yield f"router bgp {LOCAL_AS}"
    yield f" bgp router-id {dotted(device.fabric.leaf(0))}"
    yield " no bgp ebgp-requires-policy"
    yield " bgp bestpath as-path multipath-relax"
    for address in addresses:
        yield f" neighbor {address} remote-as external"
        yield f" neighbor {address} timers 3 9"
        yield f" neighbor {address} passive"
    yield " address-family ipv4 unicast"
    yield "  maximum-paths 64"
    yield from (f"  neighbor {address} prefix-list NONE out" for address in addresses)
    yield "ip prefix-list NONE seq 5 deny any"


_LINES = {"ospf": _ospfd, "isis": _isisd, "bgp": _bgpd}


def _bird(device: Setup) -> Iterator[str]:
    paths = device.fabric.spines
    yield f"router id {dotted(device.fabric.leaf(0))};"
    yield "log stderr all;"
    yield "protocol device { scan time 10; }"
    yield "protocol kernel {"
    yield "  ipv4 { export where source != RTS_DEVICE; import none; };"
    yield f"  merge paths yes limit {paths};"
    yield "}"
    yield "protocol ospf v2 fab {"
    yield f"  ecmp yes limit {paths}; tick 1;"
    yield "  ipv4 { import all; export none; };"
    yield "  area 0 {"
    dead = device.dead // device.hello
    timers = f"hello {device.hello}; dead count {dead}; retransmit 2; rx buffer 65535;"
    for spine in range(device.fabric.spines):
        yield f'    interface "s{spine}" {{ type ptp; cost 10; check link yes; {timers} }};'
    yield '    interface "lo" { stub yes; };'
    yield "  };"
    yield "}"


def fared_config(device: Setup) -> dict[str, Any]:
    """Return the configuration of a fared."""
    ports = {f"s{spine}": {"bandwidth": "400G"} for spine in range(device.fabric.spines)}
    config: dict[str, Any] = {
        "router-id": dotted(device.fabric.leaf(0)),
        "hostname": "leaf0",
        "state-directory": str(device.directory),
        "interfaces": ports,
        "api": {"socket": str(device.directory / "fared.sock"), "http": "127.0.0.1:9547"},
        "log": {"level": "info", "format": "json"},
    }
    if device.protocol == "ospf":
        point = {
            "network-type": "point-to-point",
            "cost": 10,
            "hello-interval": device.hello,
            "dead-interval": device.dead,
        }
        interfaces = {"lo": {"passive": True}, **dict.fromkeys(ports, point)}
        config["ospf"] = {
            "max-paths": device.fabric.spines,
            "areas": {"0.0.0.0": {"interfaces": interfaces}},
        }
    elif device.protocol == "bgp":
        neighbor = {
            "remote-as": "external",
            "address-families": ["ipv4"],
            "import": ["all"],
            "export": ["own"],
            "passive": True,
        }
        links = range(device.fabric.spines)
        addresses = [dotted(device.fabric.addresses((spine, 0))[0]) for spine in links]
        config["bgp"] = {"as": LOCAL_AS, "neighbors": dict.fromkeys(addresses, neighbor)}
    else:
        circuit = {
            "network-type": "point-to-point",
            "level": "level-2",
            "metric": 10,
            "hello-interval": device.hello,
            "hello-multiplier": 4,
        }
        config["isis"] = {
            "net": _net(device),
            "level": "level-2",
            "max-paths": device.fabric.spines,
            "address-families": ["ipv4"],
            "interfaces": {"lo": {"passive": True}, **dict.fromkeys(ports, circuit)},
        }
    return config
