"""Facts that the configuration needs of this machine: router id, interfaces, sysctls."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from fared.config import Config
from fared.config.globs import is_glob
from fared.core.links import Link
from fared.kernel.sysctl import Wanted, wanted_sysctls

LOOPBACK_NET = 127 << 24


def system_hostname() -> str:
    """Return the kernel's host name without its domain; empty if it is not printable."""
    name = socket.gethostname().partition(".")[0]
    return name if name.isprintable() else ""


def router_id_of(config: Config, links: list[Link]) -> int | None:
    """Return the configured router id, else the highest loopback address; None if there is none."""
    if config.router_id is not None:
        return int(config.router_id)
    addresses = [
        address.address
        for link in links
        if link.loopback
        for address in link.ipv4()
        if address.address >> 24 << 24 != LOOPBACK_NET
    ]
    return max(addresses, default=None)


def named_interfaces(config: Config) -> Iterator[str]:
    """Yield the interfaces that the file names without a glob."""
    sections = config.protocols.values()
    keys = {name for section in sections for name, _ in section.every_interface()}
    return (name for name in sorted(keys) if not is_glob(name))


def sysctls_of(config: Config, router_id: int, links: list[Link]) -> list[Wanted]:
    """Return the sysctls for the protocols and families that run."""
    names: set[str] = set()
    ipv6 = unnumbered = False
    for section in config.protocols.values():
        mine = [link for link in links if section.on(link)]
        names.update(link.name for link in mine)
        addressless = 4 in section.families and any(not link.ipv4() for link in mine)
        unnumbered |= addressless
        ipv6 |= 6 in section.families or (addressless and section.ipv4_over_ipv6)
    return wanted_sysctls(router_id, sorted(names), ipv6=ipv6, unnumbered=unnumbered)
