"""A router with our own daemon."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import yaml

from fared.core.ids import dotted
from fared.extensions.lab.addressing import SUB_DOMAIN, BfrPlan, NodePlan
from fared.extensions.lab.kinds.base import Command, hash_sysctls, ipv6_sysctls
from fared.extensions.lab.labels import BGP, ISIS, OSPF
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.sessions import PeerPlan, unnumbered

_CONFIG = "fared.yaml"
_SOCKET = "fared.sock"
INA_SOCKET = "ina.sock"


class Fared:
    """The kind ``fared``."""

    account: str | None = None

    def missing(self) -> str | None:
        """Return None: the daemon is installed with the lab."""
        return None

    def sysctls(self, plan: NodePlan) -> Mapping[str, object]:
        """Return only the sysctls that the daemon does not set itself."""
        six = ipv6_sysctls() if plan.node.ipv6 else {}
        rest = {"ipv4.conf.all.rp_filter": 0, "ipv4.conf.default.rp_filter": 0}
        return {**six, **hash_sysctls("ipv4"), **rest}

    def files(self, plan: NodePlan, directory: Path) -> Mapping[str, str]:
        """Return the daemon's YAML file."""
        if plan.node.startup_config is not None:
            return {_CONFIG: plan.node.startup_config}
        text = yaml.safe_dump(configuration(plan, directory / _SOCKET), sort_keys=False)
        return {_CONFIG: text}

    def commands(self, plan: NodePlan, directory: Path) -> Sequence[Command]:
        """Start the daemon of this installation; it is ready when its control socket exists.

        Where the node sums, ``fared-ina`` starts before it.
        """
        arguments = (*_program("fared"), "-c", str(directory / _CONFIG))
        daemon = Command("fared", arguments, directory / _SOCKET)
        if not plan.node.ina:
            return (daemon,)
        assert plan.router_id is not None
        return (summing(plan.router_id, directory, bier=plan.bfr is not None), daemon)

    def cli(self, directory: Path, arguments: Sequence[str]) -> list[str]:
        """Run ``fared-cli`` against the node's control socket."""
        return [*_program("fared-cli"), "-s", str(directory / _SOCKET), *arguments]


def summing(address: IPv4Address, directory: Path, *, bier: bool) -> Command:
    """Return how to start ``fared-ina`` at an address, with its socket in a directory."""
    socket = directory / INA_SOCKET
    told = ("--address", str(address), "--socket", str(socket), *(("--bier",) if bier else ()))
    return Command("fared-ina", (*_program("fared-ina"), *told), socket)


def configuration(plan: NodePlan, control_socket: Path) -> dict[str, Any]:
    """Return the generated configuration of a node, as in the YAML file."""
    return {
        "router-id": str(plan.router_id),
        "hostname": plan.name,
        "state-directory": str(control_socket.parent),
        "interfaces": {port.name: _link(port) for port in plan.ports},
        plan.node.protocol: _PROTOCOLS[plan.node.protocol](plan),
        **({} if plan.bfr is None else {"bier": _bier(plan.bfr, php=plan.node.bier_php)}),
        **({"ina": _ina(control_socket)} if plan.node.ina else {}),
        **plan.node.settings,
        "api": {"socket": str(control_socket), "http": "127.0.0.1:9547"},
        "log": {"level": "info", "format": "json"},
    }


def _link(port: PortAddresses) -> dict[str, Any]:
    delay = {"delay": f"{port.delay * 1e6:.0f}us"} if port.delay else {}
    return {"bandwidth": "auto", **delay}


def _network(port: PortAddresses) -> str:
    return "broadcast" if port.lan else "point-to-point"


def _bier(bfr: BfrPlan, *, php: bool) -> dict[str, Any]:
    hosts = {str(address): bfr_id for address, bfr_id in bfr.hosts.items()}
    found = {"sub-domain": SUB_DOMAIN, "bfr-id": bfr.bfr_id, "bsl": bfr.length, "hosts": hosts}
    return found | ({"php": True} if php else {})


def _ina(control_socket: Path) -> dict[str, Any]:
    return {"enabled": True, "socket": str(control_socket.parent / INA_SOCKET)}


def _isis(plan: NodePlan) -> dict[str, Any]:
    interfaces: dict[str, Any] = {"lo": {"passive": True}}
    for port in plan.ports:
        if port.to_host:
            interfaces[port.name] = {"passive": True, "metric": port.cost}
        else:
            interfaces[port.name] = {
                "network-type": _network(port),
                "level": port.level,
                "metric": port.cost,
                "hello-interval": plan.node.hello_interval,
                "hello-multiplier": 4,
            }
    return {
        "net": plan.net,
        "level": plan.node.isis_level,
        "address-families": ["ipv4", "ipv6"],
        "inter-level-propagation-policies": {"level1-to-level2": True, "level2-to-level1": True},
        "interfaces": interfaces,
    }


def _ospf(plan: NodePlan) -> dict[str, Any]:
    areas: dict[str, Any] = {}

    def area(number: int) -> dict[str, Any]:
        return areas.setdefault(dotted(number), {"interfaces": {}})["interfaces"]  # type: ignore[no-any-return]

    area(plan.home_area)["lo"] = {"passive": True}
    for port in plan.ports:
        if port.to_host:
            area(port.area)[port.name] = {"passive": True, "cost": port.cost}
        else:
            area(port.area)[port.name] = {
                "network-type": _network(port),
                "cost": port.cost,
                "hello-interval": plan.node.hello_interval,
                "dead-interval": plan.node.dead_interval,
            }
    return {"areas": areas}


def _bgp(plan: NodePlan) -> dict[str, Any]:
    neighbors = {
        key: {
            "remote-as": peer.system,
            "description": peer.peer,
            "import": ["all"],
            "export": ["own", "bgp"],
            "hold-time": plan.node.hold_time,
            **more,
        }
        for peer in plan.bgp_peers
        for key, more in _keys(plan, peer)
    }
    return {
        "as": plan.system,
        "address-families": ["ipv4", "ipv6"] if plan.node.ipv6 else ["ipv4"],
        "networks": [str(prefix) for prefix in (*plan.own_prefixes, *plan.own_prefixes6)],
        "graceful-restart": {"enabled": True},
        "neighbors": neighbors,
    }


def _keys(plan: NodePlan, peer: PeerPlan) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the keys of a neighbor, with what is of that session alone."""
    if unnumbered(plan.node):
        yield peer.interface, {}
    elif peer.address6 is None:
        yield str(peer.address), {}
    else:
        yield str(peer.address), {"address-families": ["ipv4"]}
        yield str(peer.address6), {"address-families": ["ipv6"]}


_PROTOCOLS = {OSPF: _ospf, ISIS: _isis, BGP: _bgp}


def _program(name: str) -> tuple[str, ...]:
    """Return the command of a program of this installation, even if it is not on PATH."""
    beside = Path(sys.executable).parent / name
    if beside.exists():
        return (str(beside),)
    modules = {
        "fared": "fared",
        "fared-cli": "fared.management.cli.main",
        "fared-ina": "fared.extensions.ina.inad.main",
    }
    module = modules[name]
    return (sys.executable, "-m", module)
