"""Reordering and retransmissions of TCP, from the kernel's own accounts of them.

The kernel keeps them for each connection (``struct tcp_info`` of linux/tcp.h, which ``ss -ti``
prints too) and for each namespace (/proc/net/snmp and netstat, which ``nstat`` prints). ``flows``
reads the former, for its sockets are this process's; for iperf3 there are only the latter. This
module decodes both and is pure but for ``read_counters``.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.namespaces import Netns

TCP_INFO_SIZE = 256
_REORDERING = 88
_TOTAL_RETRANS = 100
_DATA_SEGS_IN = 152
_DSACK_DUPS = 216
_REORD_SEEN = 220
_RCV_OOOPACK = 224
_SHORTEST = _RCV_OOOPACK + 4
_COUNTER_FILES = ("/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat")


@dataclass(frozen=True)
class TcpInfo:
    """The fields of ``struct tcp_info`` that concern order; Linux 5.4 has them all."""

    reordering: int
    total_retrans: int
    data_segs_in: int
    dsack_dups: int
    reord_seen: int
    rcv_ooopack: int


@dataclass(frozen=True)
class TcpOrder:
    """Order of arrival and retransmissions, of one connection or of several together.

    ``out_of_order`` segments arrived before one that was sent earlier. ``extent`` is the largest
    distance, in segments, that a sender allows for before it takes a segment for lost; senders
    raise it, from ``tcp_reordering``, as they see ``events``. None: not known. A ``spurious``
    retransmission is one that the receiver reported as a duplicate (RFC 2883 DSACK, RFC 3708).
    """

    segments: int
    out_of_order: int
    events: int
    extent: int | None
    retransmitted: int
    spurious: int

    @property
    def ratio(self) -> float:
        """The part of the segments that arrived out of order, 0 to 1."""
        return self.out_of_order / self.segments if self.segments else 0.0


def decode(info: bytes) -> TcpInfo:
    """Decode ``struct tcp_info``. Raises LabError if the kernel's is too short."""
    if len(info) < _SHORTEST:
        raise LabError("reordering of TCP: the kernel reports none (Linux 5.4 and later do)")

    def field(offset: int) -> int:
        value: int = struct.unpack_from("=I", info, offset)[0]
        return value

    return TcpInfo(
        reordering=field(_REORDERING),
        total_retrans=field(_TOTAL_RETRANS),
        data_segs_in=field(_DATA_SEGS_IN),
        dsack_dups=field(_DSACK_DUPS),
        reord_seen=field(_REORD_SEEN),
        rcv_ooopack=field(_RCV_OOOPACK),
    )


def read_info(connection: socket.socket) -> TcpInfo:
    """Read the account of a connection. Raises LabError."""
    return decode(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_SIZE))


def order_of(connections: Iterable[tuple[TcpInfo, TcpInfo]]) -> TcpOrder:
    """Return the order of connections, each given by its sender's and its receiver's account."""
    known = list(connections)
    return TcpOrder(
        segments=sum(receiver.data_segs_in for _, receiver in known),
        out_of_order=sum(receiver.rcv_ooopack for _, receiver in known),
        events=sum(sender.reord_seen for sender, _ in known),
        extent=max((sender.reordering for sender, _ in known), default=None),
        retransmitted=sum(sender.total_retrans for sender, _ in known),
        spurious=sum(sender.dsack_dups for sender, _ in known),
    )


def parse_counters(text: str) -> dict[str, int]:
    """Parse /proc/net/snmp or netstat: pairs of lines, names and values, behind a protocol."""
    lines = text.splitlines()
    counters: dict[str, int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        protocol, _, rest = names.partition(": ")
        _, _, numbers = values.partition(": ")
        for name, value in zip(rest.split(), numbers.split(), strict=True):
            counters[f"{protocol}{name}"] = int(value)
    return counters


def read_counters(netns: Netns) -> dict[str, int]:
    """Read the counters of a namespace, named as ``nstat`` does. Raises LabError."""
    counters: dict[str, int] = {}
    with netns.entered():
        for file in _COUNTER_FILES:
            try:
                counters |= parse_counters(Path(file).read_text("ascii"))
            except (OSError, ValueError) as error:
                raise LabError(f"{netns.name}: {file}: {error}") from error
    return counters


def order_between(sender: Mapping[str, int], receiver: Mapping[str, int]) -> TcpOrder:
    """Return the order that increments of the counters of two hosts show."""
    reordered = ("TcpExtTCPSACKReorder", "TcpExtTCPRenoReorder", "TcpExtTCPTSReorder")
    return TcpOrder(
        segments=receiver["TcpInSegs"],
        out_of_order=receiver["TcpExtTCPOFOQueue"],
        events=sum(sender[name] for name in reordered),
        extent=None,
        retransmitted=sender["TcpRetransSegs"],
        spurious=sender["TcpExtTCPDSACKRecvSegs"],
    )


def increments(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return by how much each counter grew."""
    return {name: value - before.get(name, 0) for name, value in after.items()}
