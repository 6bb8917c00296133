"""``broadcast-bier`` and ``all-gather-bier``: collectives whose packets the routers copy (BIER).

Each sending host sends its data once, at the rate of the bound, in packets with the bits of all
others; entropy counts on, so that packets take all paths. What somebody lacks in the end is
repeated with the bits of those who lack it. The bound is the least time that the links permit
whatever the algorithm; rates are those of the wire, so headers, some 4 % of full packets, count as
lost.
"""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from fared.core.bier import bift_id
from fared.extensions.lab.addressing import SUB_DOMAIN, AddressPlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.expected import VETH_RATE, Rate
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ranks import Rank, check_ranks, rank_of
from fared.extensions.lab.tcp_order import TcpOrder
from fared.extensions.lab.workloads.bounds import kernel_rates, least_seconds
from fared.extensions.lab.workloads.jobs import (
    ALL_GATHER_BIER,
    DEFAULT_INTERVAL,
    DEFAULT_TIMEOUT,
    Job,
)
from fared.extensions.lab.workloads.meter import LinkMeter
from fared.extensions.lab.workloads.report import Iteration, JobReport, WorkloadReport
from fared.paths.bier.bit_string import bit_strings
from fared.paths.bier.header import ETHERTYPE, FIXED_SIZE, BierHeader, encode_header

_ETHERNET = 14
_TAG = struct.Struct(">III")
"""Of a packet: iteration, rank of the sender, number."""
_PACE = 0.97
"""Part of the rate of the bound at which data leaves: bursts of several hosts need some room."""
_QUIET = 0.05
"""Seconds without an arrival after which what lacks is repeated."""
_STALLED = 10.0
_BURST = 32
_BUFFER = 1 << 26
_SO_RCVBUFFORCE = 33
_PAUSE = 0.0005


@dataclass
class _BierHost:
    """A member: its place in bit strings, its sockets, and what it lacks of each sender's data."""

    rank: int
    place: Rank
    bfr_id: int
    length: int
    sock: socket.socket
    lacking: dict[int, set[int]] = field(default_factory=dict)

    def frame(
        self, members: Sequence[_BierHost], iteration: int, number: int, filling: bytes
    ) -> bytes:
        """Return a packet to these members."""
        (found,) = bit_strings((member.bfr_id for member in members), self.length).items()
        set_id, bits = found
        header = BierHeader(
            bift_id(self.length, SUB_DOMAIN, set_id),
            bits,
            self.length,
            bfir_id=self.bfr_id,
            proto=0,
            entropy=number & 0xFFFFF,
        )
        addresses = b"\xff" * 6 + bytes(6) + ETHERTYPE.to_bytes(2, "big")
        return addresses + encode_header(header) + _TAG.pack(iteration, self.rank, number) + filling


def run_bier(
    fabric: Fabric,
    collective: str,
    hosts: Sequence[str],
    size: int,
    iterations: int,
    *,
    timeout: float = DEFAULT_TIMEOUT,
    interval: float = DEFAULT_INTERVAL,
) -> WorkloadReport:
    """Run a collective so many times; ``size`` as in ``collectives``.

    Raises LabError if a host has no BFR-id, or somebody still lacks something after ``timeout``.
    """
    check_ranks(fabric.plan, hosts, apart=True)
    rate = kernel_rates(fabric)
    gather = collective == ALL_GATHER_BIER
    block = -(-size // len(hosts)) if gather else size
    senders = range(len(hosts)) if gather else (0,)
    least = bound(fabric.plan, rate, hosts, {hosts[rank]: block for rank in senders})
    done: list[Iteration] = []
    with ExitStack() as stack:
        members = [_join(fabric, stack, rank, host) for rank, host in enumerate(hosts)]
        meter = LinkMeter(fabric, rate, interval)
        for number in range(iterations):
            begun = meter.elapsed()
            _Copying(members, senders, block, least, number).play(meter, timeout)
            done.append(Iteration(begun, meter.elapsed() - begun))
        meter.last(meter.elapsed())
    job = Job(collective, tuple(hosts), size, iterations=iterations)
    report = JobReport(job, 1, block * len(senders), least or None, tuple(done), _NO_ORDER)
    return WorkloadReport(
        fabric.topology.name, meter.elapsed(), (report,), tuple(meter.times), meter.links()
    )


def bound(plan: AddressPlan, rate: Rate, hosts: Sequence[str], blocks: Mapping[str, int]) -> float:
    """Return the least seconds until all hosts have the blocks (bytes) of these hosts.

    Into each leaf with a member goes what the others send, once; out of it what its own hosts send.
    """
    leaves = {host: rank_of(plan, host).leaf for host in hosts}
    own = dict.fromkeys(leaves.values(), 0)
    for host, size in blocks.items():
        own[leaves[host]] += size
    total, several = sum(own.values()), len(own) > 1
    found = [total / VETH_RATE]
    for leaf, size in own.items():
        ports = plan.node(leaf).fabric_ports if several else ()
        if size and ports:
            found.append(size / _sum(rate(port) for port in ports))
        if total > size and ports:
            spines = dict.fromkeys(port.peer for port in ports)
            back = (rate(port) for spine in spines for port in plan.ports_between(spine, leaf))
            found.append((total - size) / _sum(back))
    found += [
        least_seconds(plan, rate, {(leaf, other): size})
        for leaf, size in own.items()
        for other in own
        if size and other != leaf
    ]
    return max(found)


def _sum(rates: Iterator[float | None]) -> float:
    return sum(VETH_RATE if each is None else each for each in rates) or 1e-9


def _join(fabric: Fabric, stack: ExitStack, rank: int, host: str) -> _BierHost:
    """Open the socket of a host. Raises LabError if its leaf runs no BIER."""
    found = rank_of(fabric.plan, host)
    leaf, address = fabric.plan.node(found.leaf), found.nic.address.ip
    if leaf.bfr is None or address not in leaf.bfr.hosts:
        raise LabError(f"{host} has no BFR-id: {leaf.name} needs the label fared-lab.bier: on")
    node = fabric.node(found.host)
    sock = stack.enter_context(
        node.netns.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
    )
    with node.netns.entered():
        sock.bind((found.nic.name, ETHERTYPE))
    sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
    sock.setblocking(False)
    return _BierHost(rank, found, leaf.bfr.hosts[address], leaf.bfr.length, sock)


class _Copying:
    """One iteration: what is still to be sent, and what members lack."""

    def __init__(
        self,
        members: Sequence[_BierHost],
        senders: Sequence[int],
        block: int,
        least: float,
        number: int,
    ) -> None:
        self._members = members
        self._number = number
        payload = members[0].place.nic.mtu - FIXED_SIZE - members[0].length // 8 - _TAG.size
        self._chunks = max(1, -(-block // payload))
        self._filling = bytes(min(payload, block))
        self._senders = [members[rank] for rank in senders]
        self._pace = _PACE * self._chunks / least if least else math.inf
        self._sent = dict.fromkeys(senders, 0)
        self._buffer = bytearray(_ETHERNET + FIXED_SIZE + members[0].length // 8 + _TAG.size)
        for member in members:
            others = [rank for rank in senders if rank != member.rank]
            member.lacking = {rank: {*range(self._chunks)} for rank in others}

    def play(self, meter: LinkMeter, timeout: float) -> None:
        """Send until everybody has everything."""
        begun = heard = time.monotonic()
        progress = begun
        while any(any(member.lacking.values()) for member in self._members):
            now = time.monotonic()
            sending = self._send(now - begun)
            if self._receive():
                heard = progress = time.monotonic()
            elif not sending and now - heard > _QUIET:
                self._repeat()
                heard = now
            elif now - heard > _PAUSE:
                time.sleep(_PAUSE)
            meter.sample(meter.elapsed())
            if now - progress > _STALLED or now - begun > timeout:
                raise LabError(f"{self._late()} did not get everything")

    def _send(self, elapsed: float) -> bool:
        """Send what is due; return whether more is to come."""
        due = min(self._chunks, int(elapsed * self._pace) + 1 if self._pace < math.inf else _MANY)
        for sender in self._senders:
            first = self._sent[sender.rank]
            others = [member for member in self._members if member is not sender]
            for number in range(first, min(due, first + _BURST)):
                if not self._transmit(sender, others, number):
                    break
                self._sent[sender.rank] = number + 1
        return any(sent < self._chunks for sent in self._sent.values())

    def _transmit(self, sender: _BierHost, others: Sequence[_BierHost], number: int) -> bool:
        try:
            sender.sock.send(sender.frame(others, self._number, number, self._filling))
        except (BlockingIOError, OSError):
            return False
        return True

    def _repeat(self) -> None:
        for sender in self._senders:
            wanted: dict[int, list[_BierHost]] = {}
            for member in self._members:
                for number in sorted(member.lacking.get(sender.rank, ()))[:_BURST]:
                    wanted.setdefault(number, []).append(member)
            for number, members in wanted.items():
                self._transmit(sender, members, number)

    def _receive(self) -> bool:
        any_ = False
        for member in self._members:
            for iteration, rank, number in self._arrived(member):
                if iteration == self._number and rank in member.lacking:
                    member.lacking[rank].discard(number)
                    any_ = True
        return any_

    def _arrived(self, member: _BierHost) -> Iterator[tuple[int, int, int]]:
        at = len(self._buffer) - _TAG.size
        for _ in range(8 * _BURST):
            try:
                _, (_, _, kind, *_) = member.sock.recvfrom_into(self._buffer)
            except BlockingIOError:
                return
            if kind != socket.PACKET_OUTGOING:
                yield _TAG.unpack_from(self._buffer, at)

    def _late(self) -> str:
        late = [m.place.name for m in self._members if any(m.lacking.values())]
        return ", ".join(late)


_MANY = 1 << 30
_NO_ORDER = TcpOrder(0, 0, 0, None, 0, 0)
