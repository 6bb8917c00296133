"""Keeps the link-layer addresses of gateways resolved.

A member of a group whose neighbor entry is in state FAILED gets no packet any more: the kernel
gives its share to the first good member. But only a packet would make the kernel ask again, and
while there are few entries (net.ipv4 and net.ipv6.neigh.default.gc_thresh1) it does not forget the failure
either. So a neighbor that was unreachable for some seconds, without taking the carrier along,
would stay out for ever, whatever its weight. Link-state protocols cannot help: IS-IS hellos are
no IP packets, and OSPF's go to multicast addresses. Hence entries of gateways are flagged as managed (Linux 5.16): the kernel asks again
by itself every five seconds (neigh.default.interval_probe_time_ms); and as learnt by
somebody else, without which a managed entry is collected as garbage all the same. An older kernel
refuses the flags and works as it always did. A lost carrier removes entries with the next hops;
those of a link that works again come with the next hops as well.
Layouts: linux/neighbour.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6
from fared.kernel import netlink
from fared.kernel.netlink import Message, RequestSocket, attribute, u32_attribute
from fared.rib.model import HopKey

_RTM_NEWNEIGH = 28
_NDA_DST, _NDA_PROTOCOL, _NDA_FLAGS_EXT = 1, 12, 15
_NTF_USE, _NTF_EXT_LEARNED = 0x01, 0x10
_NTF_EXT_MANAGED = 0x01
_NDMSG = struct.Struct("=BxxxiHBB")
_FAMILIES = {FAMILY_IPV4: (socket.AF_INET, 4), FAMILY_IPV6: (socket.AF_INET6, 16)}
"""Address family of the kernel and bytes of an address."""
_CREATE = netlink.NLM_F_CREATE | netlink.NLM_F_REPLACE


class Neighbors:
    """Neighbor entries of next hops in use, marked with our ``protocol`` number."""

    def __init__(self, requests: RequestSocket, protocol: int) -> None:
        self._requests = requests
        self._protocol = attribute(_NDA_PROTOCOL, bytes([protocol]))

    def keep(self, hops: Iterable[HopKey]) -> None:
        """Resolve the gateways now and keep them resolved; those already kept are no harm."""
        managed = u32_attribute(_NDA_FLAGS_EXT, _NTF_EXT_MANAGED)
        self._send(_CREATE, _NTF_EXT_LEARNED, managed + self._protocol, hops)

    def release(self, hops: Iterable[HopKey]) -> None:
        """Leave the gateways to the kernel's own care again; entries that are gone stay so."""
        self._send(netlink.NLM_F_REPLACE, _NTF_USE, b"", hops)

    def _send(self, flags: int, entry_flags: int, more: bytes, hops: Iterable[HopKey]) -> None:
        requests: list[Message] = []
        for ifindex, family, gateway, _ in hops:
            if gateway:
                af, size = _FAMILIES[family]
                body = _NDMSG.pack(af, ifindex, 0, entry_flags, 0)
                body += attribute(_NDA_DST, gateway.to_bytes(size, "big")) + more
                requests.append((_RTM_NEWNEIGH, flags, body))
        # What fails costs no route: the kernel resolves on demand, too.
        self._requests.batch(requests)
