"""FEC counters of interfaces: blocks that forward error correction could not correct.

The kernel has them of drivers that implement ``get_fec_stats``, over ethtool's generic netlink
(ETHTOOL_MSG_FEC_GET with ETHTOOL_FLAG_STATS; IEEE 802.3 §30.5.1.1.18 aFECUncorrectableBlocks).
Blocks that were corrected are the usual state of a fast link, and not read. An interface without
such counters is asked once, and again when ``forget`` says that it may have changed.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import sys
from collections.abc import Mapping
from typing import Final

from fared.kernel.netlink import (
    HEADER,
    NETLINK_GENERIC,
    NLA_F_NESTED,
    NLM_F_ACK,
    NLM_F_REQUEST,
    NLMSG_ERROR,
    attribute,
    attributes,
    failure_in,
    messages,
    open_socket,
    u32_attribute,
)

# linux/genetlink.h
_CONTROLLER, _GETFAMILY, _CONTROLLER_VERSION, _FAMILY_ID, _FAMILY_NAME = 16, 3, 2, 1, 2
_GENERIC: Final = struct.Struct("=BBxx")
# linux/ethtool_netlink.h
_FEC_GET: Final = 29
_ETHTOOL_VERSION: Final = 1
_DEV_INDEX, _FLAGS, _FLAG_STATS = 1, 3, 4
_FEC_HEADER, _FEC_STATS, _UNCORRECTABLE = 1, 5, 3

_BUFFER: Final = 1 << 16
_PATIENCE: Final = 2.0
"""Seconds for an answer; a driver may ask the firmware."""
_WITHOUT: Final = frozenset((errno.EOPNOTSUPP, errno.ENODEV))


class FecCounters:
    """Reads counters of interfaces; blocks, so a thread of its own calls it."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._family = 0
        self._sequence = 0
        self._without: set[int] = set()

    def may_have(self, ifindex: int) -> bool:
        """Whether an interface has such counters, as far as is known."""
        return ifindex not in self._without

    def forget(self, ifindex: int) -> None:
        """Ask an interface again, since its FEC may be another one."""
        self._without.discard(ifindex)

    def read(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Return uncorrectable blocks since an arbitrary time, by interface. Raises OSError.

        ``wanted``: ifindex by name. Interfaces without such counters are left out.
        """
        found = {}
        for name, ifindex in wanted.items():
            count = self._ask(ifindex) if self.may_have(ifindex) else None
            if count is not None:
                found[name] = count
        return found

    def close(self) -> None:
        """Close the socket; the next reading opens one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, ifindex: int) -> int | None:
        try:
            if self._socket is None:
                self._open()
            body = self._exchange(self._family, fec_request(ifindex))
        except OSError as error:
            if error.errno not in _WITHOUT:
                self.close()
                raise
            self._without.add(ifindex)
            return None
        count = uncorrectable(body)
        if count is None:
            self._without.add(ifindex)
        return count

    def _open(self) -> None:
        self._socket = open_socket(NETLINK_GENERIC, _BUFFER)
        self._socket.settimeout(_PATIENCE)
        name = attribute(_FAMILY_NAME, b"ethtool\0")
        request = _GENERIC.pack(_GETFAMILY, _CONTROLLER_VERSION) + name
        answer = attributes(self._exchange(_CONTROLLER, request), _GENERIC.size)
        family = answer.get(_FAMILY_ID)
        if family is None:
            raise OSError(errno.EPROTO, "an answer without the number of ethtool")
        self._family = int.from_bytes(family[:2], sys.byteorder)

    def _exchange(self, kind: int, body: bytes) -> bytes:
        """Send a request; return the body of its answer. Raises OSError."""
        assert self._socket is not None
        self._sequence += 1
        flags = NLM_F_REQUEST | NLM_F_ACK
        head = HEADER.pack(HEADER.size + len(body), kind, flags, self._sequence, 0)
        self._socket.send(head + body)
        answer: bytes | None = None
        while True:
            for found, its_flags, sequence, _, payload in messages(self._socket.recv(_BUFFER)):
                if sequence != self._sequence:
                    continue
                if found != NLMSG_ERROR:
                    answer = payload
                    continue
                failure = failure_in(its_flags, payload)
                if failure is not None:
                    raise OSError(failure.error, failure.text)
                if answer is None:
                    raise OSError(errno.EPROTO, "an acknowledgement without an answer")
                return answer


def fec_request(ifindex: int) -> bytes:
    """Return the generic header and attributes of ETHTOOL_MSG_FEC_GET with statistics."""
    header = u32_attribute(_DEV_INDEX, ifindex) + u32_attribute(_FLAGS, _FLAG_STATS)
    return _GENERIC.pack(_FEC_GET, _ETHTOOL_VERSION) + attribute(_FEC_HEADER | NLA_F_NESTED, header)


def uncorrectable(body: bytes) -> int | None:
    """Return the count of an ETHTOOL_MSG_FEC_GET_REPLY; None: the driver has none.

    The first number is that of the port; those of its lanes follow.
    """
    statistics = attributes(body, _GENERIC.size).get(_FEC_STATS, b"")
    values = attributes(statistics).get(_UNCORRECTABLE, b"")
    with contextlib.suppress(struct.error):
        (count,) = struct.unpack_from("=Q", values)
        return int(count)
    return None
