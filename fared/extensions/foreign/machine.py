"""What a reader wants to know of the machine on which a configuration is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import NamedTuple

from fared.core.ids import format_address
from fared.core.links import PresentLink

Address = IPv4Interface | IPv6Interface


class MachineLink(NamedTuple):
    """An interface of the machine: its addresses, and its speed in bits/s if the kernel tells."""

    addresses: tuple[Address, ...]
    speed: float | None


Machine = Mapping[str, MachineLink]
"""By name; empty: not known, or another machine."""


def machine_of(present: Iterable[PresentLink]) -> dict[str, MachineLink]:
    """Return the interfaces of this machine."""
    return {
        item.link.name: MachineLink(
            tuple(
                ip_interface(f"{format_address(a.family, a.address)}/{a.prefix_length}")
                for a in item.link.addresses
            ),
            None if item.link.speed is None else item.link.speed * 8,
        )
        for item in present
    }


def lacks(machine: Machine, name: str, addresses: Iterable[Address]) -> list[Address]:
    """Return the addresses that an interface of the machine does not have; all if it has none."""
    link = machine.get(name)
    return [each for each in addresses if link is None or each not in link.addresses]
