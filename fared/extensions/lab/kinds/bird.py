"""A router with BIRD 2."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fared.core.ids import dotted
from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.kinds.base import Command, router_sysctls
from fared.extensions.lab.labels import BGP
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.sessions import unnumbered

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
        """Start the daemon in the foreground, so that the started process is the daemon.

        A socket that is there was left by one that was killed: where BGP runs, what that has put
        into the kernel stays until neighbors have told their routes again.
        """
        socket = directory / "bird.ctl"
        arguments = ("bird", "-f", "-c", str(directory / _CONFIG), "-s", str(socket))
        pid_file = ("-P", str(directory / "bird.pid"))
        recovers = ("-R",) if plan.node.protocol == BGP and socket.exists() else ()
        return (Command("bird", (*arguments, *pid_file, *recovers), socket),)

    def cli(self, directory: Path, arguments: Sequence[str]) -> list[str]:
        """Run birdc."""
        return ["birdc", "-s", str(directory / "bird.ctl"), *arguments]


def _config(plan: NodePlan) -> Iterator[str]:
    yield f"router id {plan.router_id};"
    yield "log stderr all;"
    yield "protocol device { scan time 10; }"
    for family in _families(plan):
        yield "protocol kernel {"
        yield f"  {family} {{ export where source != RTS_DEVICE; import none; }};"
        kept = " graceful restart on;" if plan.node.protocol == BGP else ""
        yield f"  merge paths yes limit 64;{kept}"
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
    """Yield a protocol for each session. BIRD merges paths of different AS by itself.

    An unnumbered one waits for a neighbor to connect, which hears of the router by ``radv``.
    """
    own = ", ".join(f'"{name}"' for name in ("lo", *(port.name for port in plan.own_ports)))
    families = _families(plan)
    yield f"protocol direct own {{ {' '.join(f'{one};' for one in families)} interface {own}; }}"
    timers = f"hold time {plan.node.hold_time}; keepalive time {plan.node.keepalive_interval};"
    yield "template bgp fabric {"
    yield f"  {timers} connect delay time 0; connect retry time 1; error wait time 1, 4;"
    yield "  check link on; graceful restart on;"
    yield "}"
    hop = " extended next hop on;" if unnumbered(plan.node) else ""
    channels = {
        one: f'  {one} {{ import all; export where source = RTS_BGP || proto = "own";{hop} }};'
        for one in families
    }
    for peer in plan.bgp_peers:
        if unnumbered(plan.node):
            yield f"protocol bgp '{peer.name}' from fabric {{"
            yield f'  local as {plan.system}; interface "{peer.interface}";'
            yield f"  neighbor range fe80::/10 as {peer.system};"
            yield from (*channels.values(), "}")
            continue
        for family, local, far in (
            ("ipv4", peer.local, peer.address),
            ("ipv6", peer.local6, peer.address6),
        ):
            if far is None:
                continue
            word = peer.name if family == "ipv4" else f"{peer.name}-{family}"
            yield f"protocol bgp '{word}' from fabric {{"
            yield f"  local {local} as {plan.system};"
            yield f"  neighbor {far} as {peer.system};"
            yield from (channels[family], "}")
    if unnumbered(plan.node):
        links = ", ".join(f'"{peer.interface}"' for peer in plan.bgp_peers)
        yield f"protocol radv {{ interface {links} {{ max ra interval 4; default lifetime 0; }}; }}"


def _families(plan: NodePlan) -> tuple[str, ...]:
    return ("ipv4", "ipv6") if plan.node.ipv6 else ("ipv4",)
