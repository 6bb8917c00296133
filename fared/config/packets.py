"""Which packets may take another path than their flow: settings below ``adaptive``."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from fared.config import values
from fared.config.section import Section

_Port = Annotated[int, values.whole(1, 65535)]


class PacketMatch(Section, frozen=True):
    """Packets with one of these DSCPs or ports, as source or destination. All empty: any packet."""

    dscp: list[Annotated[int, values.whole(0, 63)]] = field(default_factory=list)
    udp_ports: list[_Port] = field(default_factory=list)
    tcp_ports: list[_Port] = field(default_factory=list)
