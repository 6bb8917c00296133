"""A router with BIRD 2."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fared.core.ids import dotted
from fared.extensions.lab.addressing import NodePlan, PortAddresses
from fared.extensions.lab.kinds.base import Command, router_sysctls
from fared.extensions.lab.labels import BGP

_CONFIG = "bird.conf"


class Bird:
    """The kind ``bird``."""

    account: str | None = None

    def missing(self) -> str | None:
        """Both the daemon and its client are needed."""
        absent = [name for name in ("bird", "birdc") if shutil.which(name) is None]
        return f"{', '.join(absent)} (Debian package bird2)" if absent else None

    def sysctls(self, plan: NodePlan) -> Mapping[str, object]:
        """Return the sysctls of a router: BIRD leaves them to the administrator."""
        return router_sysctls(plan)

    def files(self, plan: NodePlan, directory: Path) -> Mapping[str, str]:
        """Return bird.conf: the startup-config unchanged, or a generated one."""
        del directory
        if plan.node.startup_config is not None:
            return {_CONFIG: plan.node.startup_config}
        return {_CONFIG: "\n".join(_config(plan)) + "\n"}

    def commands(self, plan: NodePlan, directory: Path) -> Sequence[Command]:
        """Start the daemon in the foreground, so that the started process is the daemon."""
        del plan
        socket = directory / "bird.ctl"
        arguments = ("bird", "-f", "-c", str(directory / _CONFIG), "-s", str(socket))
        pid_file = ("-P", str(directory / "bird.pid"))
        return (Command("bird", (*arguments, *pid_file), socket),)

    def cli(self, directory: Path, arguments: Sequence[str]) -> list[str]:
        """Run birdc."""
        return ["birdc", "-s", str(directory / "bird.ctl"), *arguments]


def _config(plan: NodePlan) -> Iterator[str]:
    yield f"router id {plan.router_id};"
    yield "log stderr all;"
    yield "protocol device { scan time 10; }"
    yield "protocol kernel {"
    yield "  ipv4 { export where source != RTS_DEVICE; import none; };"
    yield "  merge paths yes limit 64;"
    yield "}"
    yield from _bgp(plan) if plan.node.protocol == BGP else _ospf(plan)


def _ospf(plan: NodePlan) -> Iterator[str]:
    yield "protocol ospf v2 fabric {"
    yield "  ecmp yes limit 64;"
    yield "  tick 1;"
    yield "  ipv4 { import all; export none; };"
    for area in sorted({port.area for port in plan.ports} | {plan.home_area}):
        yield f"  area {dotted(area)} {{"
        if area == plan.home_area:
            yield '    interface "lo" { stub yes; };'
        mine = (port for port in plan.ports if port.area == area)
        yield from (f"    {_interface(port, plan.node.hello_interval)}" for port in mine)
        yield "  };"
    yield "}"


def _interface(port: PortAddresses, hello: int) -> str:
    if port.to_host:
        return f'interface "{port.name}" {{ stub yes; cost {port.cost}; }};'
    network = f"type {'bcast' if port.lan else 'ptp'};"
    timers = f"hello {hello}; dead count 4; retransmit 2; rx buffer 65535;"
    return f'interface "{port.name}" {{ {network} cost {port.cost}; check link yes; {timers} }};'


def _bgp(plan: NodePlan) -> Iterator[str]:
    """Yield a protocol for each neighbor. BIRD merges paths of different AS by itself."""
    own = ", ".join(f'"{name}"' for name in ("lo", *(p.name for p in plan.ports if p.serves)))
    yield f"protocol direct own {{ ipv4; interface {own}; }}"
    timers = f"hold time {plan.node.hold_time}; keepalive time {plan.node.keepalive_interval};"
    yield "template bgp fabric {"
    yield f"  {timers} connect delay time 0; connect retry time 1; error wait time 1, 4;"
    yield "  check link on;"
    yield '  ipv4 { import all; export where source = RTS_BGP || proto = "own"; };'
    yield "}"
    for port in plan.bgp_ports:
        yield f"protocol bgp '{port.name}' from fabric {{"
        yield f"  local {port.address.ip} as {plan.system};"
        yield f"  neighbor {port.peer_address} as {port.peer_system};"
        yield "}"
