"""A router with FRR's zebra and ospfd, isisd or bgpd, tuned for data centre fabrics."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fared.core.ids import dotted
from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.kinds.base import Command, router_sysctls
from fared.extensions.lab.labels import BGP, ISIS, OSPF
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.sessions import PeerPlan, unnumbered

_STARTUP = "startup.conf"
_DAEMONS = Path("/usr/lib/frr")
_VETH_RATE = 10e9 / 8
_KEPT = "60"
"""Seconds for which zebra keeps routes of one that was killed, until BGP has told them again."""
_FRR_LEVELS = {"level-2": "level-2-only"}
_PROTOCOLS = {OSPF: "ospfd", ISIS: "isisd", BGP: "bgpd"}


class Frr:
    """The kind ``frr``."""

    account: str | None = "frr"

    def missing(self) -> str | None:
        """Checks for Debian's package."""
        needed = ("zebra", *_PROTOCOLS.values())
        absent = [name for name in needed if not (_DAEMONS / name).exists()]
        if shutil.which("vtysh") is None:
            absent.append("vtysh")
        return f"{', '.join(absent)} (Debian package frr)" if absent else None

    def sysctls(self, plan: NodePlan) -> Mapping[str, object]:
        """Return the sysctls of a router: FRR leaves them to the administrator."""
        return router_sysctls(plan)

    def files(self, plan: NodePlan, directory: Path) -> Mapping[str, str]:
        """Return zebra.conf and the protocol's; a startup-config is in a file of its own."""
        del directory
        daemon = _PROTOCOLS[plan.node.protocol]
        if plan.node.startup_config is not None:
            return {
                "zebra.conf": f"hostname {plan.name}\n",
                f"{daemon}.conf": "",
                _STARTUP: plan.node.startup_config,
            }
        lines = {OSPF: _ospfd, ISIS: _isisd, BGP: _bgpd}[plan.node.protocol](plan)
        return {
            "zebra.conf": "\n".join(_zebra(plan)) + "\n",
            f"{daemon}.conf": "\n".join(lines) + "\n",
        }

    def commands(self, plan: NodePlan, directory: Path) -> Sequence[Command]:
        """Start zebra, then the protocol, which looks for zebra's socket only every 10 s."""
        socket = directory / "zserv"
        protocol = _PROTOCOLS[plan.node.protocol]
        daemons = [
            Command(
                name,
                (
                    str(_DAEMONS / name),
                    *("-f", str(directory / f"{name}.conf")),
                    *("-i", str(directory / f"{name}.pid")),
                    *("-z", str(socket)),
                    *("--vty_socket", str(directory)),
                    *("-P", "0", "--log", "stdout"),
                    *(("-K", _KEPT) if name == "zebra" and protocol == "bgpd" else ()),
                ),
                socket if name == "zebra" else directory / f"{name}.vty",
            )
            for name in ("zebra", protocol)
        ]
        if plan.node.startup_config is not None:
            load = tuple(self.cli(directory, ["-f", str(directory / _STARTUP)]))
            daemons.append(Command("vtysh", load, lasting=False))
        return daemons

    def cli(self, directory: Path, arguments: Sequence[str]) -> list[str]:
        """Run vtysh: words form one command; an option and the rest are passed unchanged."""
        tool = ["vtysh", "--vty_socket", str(directory)]
        if not arguments or arguments[0].startswith("-"):
            return [*tool, *arguments]
        return [*tool, "-c", " ".join(arguments)]


def _zebra(plan: NodePlan) -> Iterator[str]:
    """Yield zebra.conf, without next-hop objects.

    On carrier loss the kernel shrinks groups without notification. zebra 8.4 keeps an unused group
    for 180 s and uses it again when the link returns, as if it were still complete.
    """
    yield f"hostname {plan.name}"
    yield "no zebra nexthop kernel enable"
    for port in plan.fabric_ports:
        yield f"interface {port.name}"
        yield from _link_params(port)


def _link_params(port: PortAddresses) -> Iterator[str]:
    """Yield the TE attributes, bytes/s.

    FRR refuses a maximum bandwidth that is not above every other one at that moment, and its
    defaults for those come from an overflowing interface speed: so all are lowered first.
    """
    rate = f"{_VETH_RATE if port.rate is None else port.rate:.6g}"
    yield " link-params"
    yield "  enable"
    yield f"  metric {port.cost}"
    yield "  max-rsv-bw 1"
    yield from (f"  unrsv-bw {priority} 1" for priority in range(8))
    yield f"  max-bw {rate}"
    yield f"  max-rsv-bw {rate}"
    yield from (f"  unrsv-bw {priority} {rate}" for priority in range(8))
    yield f"  ava-bw {rate}"
    yield "  use-bw 0"
    yield " exit-link-params"


def _ospfd(plan: NodePlan) -> Iterator[str]:
    yield f"hostname {plan.name}"
    for port in plan.ports:
        yield f"interface {port.name}"
        yield f" ip ospf area {dotted(port.area)}"
        yield f" ip ospf cost {port.cost}"
        if port.to_host:
            yield " ip ospf passive"
            continue
        yield f" ip ospf network {'broadcast' if port.lan else 'point-to-point'}"
        yield f" ip ospf hello-interval {plan.node.hello_interval}"
        yield f" ip ospf dead-interval {plan.node.dead_interval}"
        yield " ip ospf retransmit-interval 1"
    yield "interface lo"
    yield f" ip ospf area {dotted(plan.home_area)}"
    yield " ip ospf passive"
    yield "router ospf"
    yield f" ospf router-id {plan.router_id}"
    yield " maximum-paths 64"
    yield " log-adjacency-changes detail"
    yield " timers throttle spf 0 50 500"
    yield " timers throttle lsa all 0"
    yield " timers lsa min-arrival 0"
    yield " capability opaque"
    yield " mpls-te on"
    yield f" mpls-te router-address {plan.router_id}"


def _isisd(plan: NodePlan) -> Iterator[str]:
    """Yield isisd.conf. Order matters: timers first, or the first LSP waits for 30 s."""
    yield f"hostname {plan.name}"
    yield "router isis fabric"
    yield " lsp-gen-interval 1"
    yield " spf-interval 1"
    yield (
        " spf-delay-ietf init-delay 0 short-delay 50 long-delay 500 holddown 1000 time-to-learn 500"
    )
    yield f" net {plan.net}"
    yield f" is-type {_FRR_LEVELS.get(plan.node.isis_level, plan.node.isis_level)}"
    yield " metric-style wide"
    yield " mpls-te on"
    yield f" mpls-te router-address {plan.router_id}"
    for port in plan.ports:
        yield f"interface {port.name}"
        yield " ip router isis fabric"
        yield " ipv6 router isis fabric"
        yield f" isis metric {port.cost}"
        if port.to_host:
            yield " isis passive"
            continue
        if not port.lan:
            yield " isis network point-to-point"
        yield f" isis circuit-type {_FRR_LEVELS.get(port.level, port.level)}"
        yield f" isis hello-interval {plan.node.hello_interval}"
        yield " isis hello-multiplier 4"
    yield "interface lo"
    yield " ip router isis fabric"
    yield " ipv6 router isis fabric"
    yield " isis passive"


def _bgpd(plan: NodePlan) -> Iterator[str]:
    """Yield bgpd.conf, as RFC 7938 and the users of FRR have it in fabrics."""
    node = plan.node
    yield "frr defaults datacenter"
    yield f"hostname {plan.name}"
    yield f"router bgp {plan.system}"
    yield f" bgp router-id {plan.router_id}"
    yield " no bgp ebgp-requires-policy"
    yield " bgp bestpath as-path multipath-relax"
    yield f" timers bgp {node.keepalive_interval} {node.hold_time}"
    yield " bgp graceful-restart"
    yield " bgp graceful-restart preserve-fw-state"
    named = [(word, peer) for peer in plan.bgp_peers for word in _words(plan, peer)]
    for word, peer in named:
        by = f"{word} interface" if unnumbered(node) else word
        yield f" neighbor {by} remote-as {peer.system}"
        yield f" neighbor {word} description {peer.peer}"
        yield f" neighbor {word} timers connect 1"
    yield " address-family ipv4 unicast"
    yield from (f"  no neighbor {word} activate" for word, _ in named if ":" in word)
    yield from (f"  network {prefix}" for prefix in plan.own_prefixes)
    yield "  maximum-paths 64"
    yield " exit-address-family"
    if not node.ipv6:
        return
    yield " address-family ipv6 unicast"
    of_ipv6 = (word for word, _ in named if unnumbered(node) or ":" in word)
    yield from (f"  neighbor {word} activate" for word in of_ipv6)
    yield from (f"  network {prefix}" for prefix in plan.own_prefixes6)
    yield "  maximum-paths 64"
    yield " exit-address-family"


def _words(plan: NodePlan, peer: PeerPlan) -> list[str]:
    """Return the neighbors that a router at the far end is: an interface, or its addresses."""
    if unnumbered(plan.node):
        return [peer.interface]
    return [str(address) for address in (peer.address, peer.address6) if address is not None]
