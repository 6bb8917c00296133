"""TCP connections between hosts and the transfer of bytes over them, driven by one loop.

Both ends of every connection are sockets of this process, opened inside the hosts' namespaces.
Python moves no payload, so the links are the bottleneck and not the loop: the sender passes the
kernel pages of a file in memory, and the receiver tells the kernel to discard received data. Source
ports are drawn from a seed, so the same flows can be repeated.
"""

from __future__ import annotations

import os
import random
import resource
import selectors
import socket
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from fared.core.closing import Closing
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ranks import Pair, rank_of
from fared.extensions.lab.tcp_order import TcpOrder, order_of, read_info

CONGESTION_CONTROL = "cubic"
_FIRST_LISTENING_PORT = 18515
_SOURCE_PORTS = range(1024, 18000)
_BACKLOG = 4096
_CONNECT_DEADLINE = 10.0
_CHUNK = 1 << 18
_SPARE_DESCRIPTORS = 256

Label = tuple[int, int]
"""What a sent byte belongs to: an owner of connections, and a number of its own."""


@dataclass(eq=False)
class Flow:
    """One connection, used in one direction: ``unsent`` bytes are still to be sent.

    ``expected``: what was sent and has not arrived, in order, as pairs of a label and bytes.
    """

    source: str
    target: str
    sender: socket.socket
    receiver: socket.socket | None = None
    unsent: int = 0
    expected: deque[tuple[Label, int]] = field(default_factory=deque)

    def arrived(self, size: int) -> Iterator[tuple[Label, int]]:
        """Yield what received bytes belong to: a connection keeps their order."""
        while size:
            label, due = self.expected.popleft()
            if due > size:
                self.expected.appendleft((label, due - size))
            yield label, min(size, due)
            size -= min(size, due)


class Flows(Closing):
    """The connections of several owners, numbered from 0; a context that closes them all."""

    def __init__(
        self,
        fabric: Fabric,
        owners: Sequence[Mapping[Pair, int]],
        seed: int = 0,
        *,
        ipv6: bool = False,
        congestion: str = CONGESTION_CONTROL,
    ) -> None:
        """Connect pairs of hosts, for each owner, with a number of connections. Raises LabError."""
        self._fabric = fabric
        self._ipv6 = ipv6
        self._congestion = congestion
        self._stack = ExitStack()
        self._selector = self._stack.enter_context(selectors.DefaultSelector())
        self._buffer = memoryview(bytearray(_CHUNK))
        self._flows: list[dict[Pair, list[Flow]]] = []
        total = sum(sum(owner.values()) for owner in owners)
        _allow_descriptors(2 * total + _SPARE_DESCRIPTORS)
        if total > len(_SOURCE_PORTS):
            raise LabError(f"{total} connections are more than {len(_SOURCE_PORTS)}")
        ports = iter(random.Random(seed).sample(_SOURCE_PORTS, total))
        try:
            self._pages = os.memfd_create("pages", os.MFD_CLOEXEC)
            self._stack.callback(os.close, self._pages)
            os.truncate(self._pages, _CHUNK)
            for number, pairs in enumerate(owners):
                self._flows.append(self._connect(number, pairs, ports))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every socket, at once: nothing stays in TIME-WAIT, so ports can be used again."""
        self._stack.close()

    def send(self, label: Label, pair: Pair, size: int) -> None:
        """Send a number of bytes from one host to another, split over the pair's connections.

        ``poll`` reports their arrival by the label.
        """
        flows = self._flows[label[0]][pair]
        for number, flow in enumerate(flows):
            share = size // len(flows) + (number < size % len(flows))
            if share and not flow.unsent:
                self._selector.register(flow.sender, selectors.EVENT_WRITE, flow)
            flow.unsent += share
            if share:
                flow.expected.append((label, share))

    def poll(self, timeout: float) -> dict[Label, int]:
        """Move as much data as possible, and wait for it; return bytes received by label.

        Raises LabError when a connection breaks.
        """
        received: dict[Label, int] = {}
        for key, mask in self._selector.select(timeout):
            flow: Flow = key.data
            try:
                if mask & selectors.EVENT_READ:
                    for label, size in flow.arrived(self._receive(flow)):
                        received[label] = received.get(label, 0) + size
                else:
                    self._transmit(flow)
            except BlockingIOError:
                continue
            except OSError as error:
                raise LabError(f"{flow.source} to {flow.target}: {error.strerror}") from error
        return received

    def order(self, owner: int) -> TcpOrder:
        """Return how the segments of an owner have arrived so far. Raises LabError.

        Acknowledgments under way, of the last round trip, are not in it.
        """
        return order_of(
            (read_info(flow.sender), read_info(flow.receiver))
            for flows in self._flows[owner].values()
            for flow in flows
            if flow.receiver is not None
        )

    def _transmit(self, flow: Flow) -> None:
        sent = os.sendfile(flow.sender.fileno(), self._pages, 0, min(flow.unsent, _CHUNK))
        flow.unsent -= sent
        if not flow.unsent:
            self._selector.unregister(flow.sender)

    def _receive(self, flow: Flow) -> int:
        """Discard received data: with MSG_TRUNC a TCP socket copies nothing (tcp(7))."""
        assert flow.receiver is not None
        size = flow.receiver.recv_into(self._buffer, _CHUNK, socket.MSG_TRUNC)
        if not size:
            raise LabError(f"{flow.source} to {flow.target}: the connection was closed")
        return size

    # -- connecting --------------------------------------------------------------------------

    def _connect(
        self, owner: int, pairs: Mapping[Pair, int], ports: Iterator[int]
    ) -> dict[Pair, list[Flow]]:
        """Connect one owner's pairs, then accept at every target and identify peers by port."""
        listening = _FIRST_LISTENING_PORT + owner
        flows: dict[Pair, list[Flow]] = {}
        with ExitStack() as stack:
            listeners = {
                target: stack.enter_context(self._listen(target, listening))
                for target in dict.fromkeys(target for _, target in pairs)
            }
            expected: dict[tuple[str, str, int], Flow] = {}
            for (source, target), count in pairs.items():
                for _ in range(count):
                    port = next(ports)
                    flow = Flow(source, target, self._dial(source, target, port, listening))
                    flows.setdefault((source, target), []).append(flow)
                    expected[target, self._address(source), port] = flow
            for target, *_ in expected:
                self._accept(target, listeners[target], expected)
        return flows

    def _listen(self, host: str, port: int) -> socket.socket:
        listener = self._socket(host)
        try:
            listener.bind((self._address(host), port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise LabError(
                f"{host}: port {port}: {error.strerror} (is another workload running?)"
            ) from error
        return listener

    def _dial(self, source: str, target: str, port: int, listening: int) -> socket.socket:
        sender = self._stack.enter_context(self._socket(source))
        try:
            sender.bind((self._address(source), port))
            sender.connect((self._address(target), listening))
        except OSError as error:
            reason = error.strerror or str(error)
            raise LabError(f"{source} cannot connect to {target}: {reason}") from error
        sender.setblocking(False)
        return sender

    def _accept(
        self, target: str, listener: socket.socket, expected: Mapping[tuple[str, str, int], Flow]
    ) -> None:
        try:
            receiver, (address, port, *_) = listener.accept()
        except OSError as error:
            raise LabError(f"{target}: {error.strerror or error}") from error
        self._stack.enter_context(receiver)
        receiver.setblocking(False)
        flow = expected[target, address, port]
        flow.receiver = receiver
        self._selector.register(receiver, selectors.EVENT_READ, flow)

    def _socket(self, name: str) -> socket.socket:
        family = socket.AF_INET6 if self._ipv6 else socket.AF_INET
        host = rank_of(self._fabric.plan, name).host
        made = self._fabric.node(host).netns.socket(family, socket.SOCK_STREAM)
        made.settimeout(_CONNECT_DEADLINE)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self._congestion.encode())
        except OSError as error:
            made.close()
            name = self._congestion
            raise LabError(
                f"congestion control {name!r}: {error.strerror} (this kernel)"
            ) from error
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def _address(self, name: str) -> str:
        return str(rank_of(self._fabric.plan, name).address(ipv6=self._ipv6))


def _allow_descriptors(wanted: int) -> None:
    """Raise this process's limit of open files as necessary. Raises LabError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and wanted > hard:
        raise LabError(f"{wanted} sockets are more than this process may open ({hard})")
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
