"""Keeps the link-layer addresses of gateways resolved.

A group member whose neighbor entry is in state FAILED gets no more packets: the kernel gives its
share to the first valid member. Only a packet would make the kernel resolve it again, and while
there are few entries (net.ipv4 and net.ipv6.neigh.default.gc_thresh1) the kernel does not remove
the failed one either. So a neighbor that was unreachable for some seconds, with the carrier up,
would stay unused forever. Link-state protocols do not help: IS-IS hellos are no IP packets, and
OSPF's go to multicast addresses.

Hence entries of gateways get two flags: managed (Linux 5.16), by which the kernel resolves them
every five seconds (neigh.default.interval_probe_time_ms), and externally learned, without which a
managed entry is still collected as garbage. An older kernel refuses the flags and resolves on
demand only. A lost carrier removes entries with the next hops; ``KernelFib`` keeps them again with
the next hops when the link returns. Layouts: linux/neighbour.h.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable

from fared.kernel import netlink
from fared.kernel.netlink import Message, attribute, u32_attribute
from fared.kernel.requests import RequestSocket
from fared.kernel.rtnetlink import AF, BYTES
from fared.paths.rib.model import HopKey

_RTM_NEWNEIGH = 28
_NDA_DST, _NDA_PROTOCOL, _NDA_FLAGS_EXT = 1, 12, 15
_NTF_USE, _NTF_EXT_LEARNED = 0x01, 0x10
_NTF_EXT_MANAGED = 0x01
_NDMSG = struct.Struct("=BxxxiHBB")
_CREATE = netlink.NLM_F_CREATE | netlink.NLM_F_REPLACE
_PASSING = frozenset((errno.EAGAIN, errno.EBUSY, errno.ENOBUFS, errno.ENOMEM, errno.EMFILE))
"""Temporary errors; all others, such as those of an old kernel, are permanent."""


class NeighborCache:
    """Neighbor entries of next hops in use, marked with our ``protocol`` number."""

    def __init__(self, requests: RequestSocket, protocol: int) -> None:
        self._requests = requests
        self._protocol = attribute(_NDA_PROTOCOL, bytes([protocol]))
        self._failed: set[HopKey] = set()

    def keep(self, hops: Iterable[HopKey]) -> None:
        """Keep the gateways resolved from now on; repeated calls are harmless."""
        managed = u32_attribute(_NDA_FLAGS_EXT, _NTF_EXT_MANAGED)
        wanted = list(hops)
        self._failed.difference_update(wanted)
        more = managed + self._protocol
        self._failed.update(self._send(_CREATE, _NTF_EXT_LEARNED, more, wanted))

    def release(self, hops: Iterable[HopKey]) -> None:
        """Release gateways: the kernel ages their entries as usual; absent entries stay absent."""
        released = list(hops)
        self._failed.difference_update(released)
        # Without NLM_F_CREATE: an entry that is gone is not created again (ENOENT, ignored).
        self._send(netlink.NLM_F_REPLACE, _NTF_USE, b"", released)

    def retry(self) -> None:
        """Retry entries for which the kernel had no memory, or the process no socket."""
        if self._failed:
            self.keep(tuple(self._failed))

    def _send(
        self, flags: int, entry_flags: int, more: bytes, hops: Iterable[HopKey]
    ) -> list[HopKey]:
        """Send a request for each gateway; return those worth retrying."""
        asked: list[HopKey] = []
        requests: list[Message] = []
        for hop in hops:
            ifindex, family, gateway, _ = hop
            if gateway:
                body = _NDMSG.pack(AF[family], ifindex, 0, entry_flags, 0)
                body += attribute(_NDA_DST, gateway.to_bytes(BYTES[family], "big")) + more
                requests.append((_RTM_NEWNEIGH, flags, body))
                asked.append(hop)
        # A failure affects no route: the kernel also resolves on demand.
        failures = self._requests.batch(requests)
        return [asked[i] for i, failure in failures.items() if failure.error in _PASSING]
