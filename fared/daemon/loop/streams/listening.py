"""Accepts the connections of neighbors, and of nobody else.

Anybody who reaches a router can connect to its port. Of a stranger nothing is kept: the connection
is reset at once, counted by reason, and logged once a minute. What neighbors open is limited, too.
After many connections in one turn the port rests for a moment: the queue of the kernel is bounded,
and neighbors that find no place there are connected to from here.

A neighbor with a key is accepted only if the kernel has the key: it has then verified every segment
(RFC 2385). One that must be on the link is accepted only with the TTL of the link (RFC 5082 §3).
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from fared.core.streams import FROM_LINK, Listen, Listener, StreamKey
from fared.daemon.loop.descriptors import is_shortage
from fared.daemon.loop.rate_limited import RateLimitedLog
from fared.daemon.loop.streams.pump import READ, Pump
from fared.kernel import tcp
from fared.kernel.arrived import count_error
from fared.kernel.errors import PrivilegeError
from fared.kernel.reopening import Reopening

_AT_ONCE: Final = 32
"""Connections that a turn accepts."""
_REST: Final = 0.05
"""Seconds in which none is accepted after so many."""
_SHORT_REST: Final = 0.5
"""The same while there is no descriptor for one."""
_FAMILIES: Final = {socket.AF_INET: "IPv4", socket.AF_INET6: "IPv6"}

Accepted = Callable[[Listener, socket.socket], bool]
"""Takes a connection, if the neighbor has not too many."""
_Who = tuple[bytes, str | None]
"""A packed address and, if it is link-local, the name of its link."""


class Listening:
    """The sockets that listen, one for each family of the neighbors that may connect."""

    def __init__(
        self,
        pump: Pump,
        accepted: Accepted,
        counters: Counter[str],
        *,
        link_name: Callable[[int], str | None],
        make: tcp.MakeSocket,
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
    ) -> None:
        """``link_name`` is that of an index."""
        self._pump, self._accepted, self._counters = pump, accepted, counters
        self._link_name, self._make, self._log = link_name, make, log
        self._refused = RateLimitedLog(log.warning, "connection-refused")
        self._short = RateLimitedLog(log.warning, "connections-not-accepted")
        self._loop = asyncio.get_running_loop()
        self._again = Reopening(self._loop, self._open, self._report)
        self._resting: dict[int, asyncio.TimerHandle] = {}
        self._port = 0
        self._neighbors: dict[_Who, Listener] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._keys: dict[int, dict[str, StreamKey]] = {}
        """Those that the listening socket of a family has, by address."""

    def listen(self, wanted: Listen) -> None:
        """Accept connections of these neighbors from now on. Raises PrivilegeError."""
        if wanted.port != self._port:
            self.close()
        self._port = wanted.port
        self._neighbors = {who(one): one for one in wanted.listeners}
        families = {tcp.family_of(one.transport.remote) for one in wanted.listeners}
        for family in _FAMILIES:
            if family not in families:
                self._close(family)
            elif family in self._sockets:
                self._set_keys(family)
            else:
                self._again.forget(family)
                self._open(family)

    def close(self) -> None:
        """Listen no more."""
        for family in _FAMILIES:
            self._close(family)

    # -- the sockets that listen ------------------------------------------------------------

    def _open(self, family: int) -> None:
        try:
            made = tcp.listening(self._make, family, self._port)
        except PermissionError as error:
            purpose = f"listen on port {self._port}"
            raise PrivilegeError("CAP_NET_BIND_SERVICE", purpose) from error
        except OSError as error:
            count_error(self._counters, "listen-error", error)
            self._again.failed(family, error)
            return
        self._sockets[family], self._keys[family] = made, {}
        self._set_keys(family)
        self._watch(family)
        self._again.opened(family)

    def _watch(self, family: int) -> None:
        self._resting.pop(family, None)
        sock = self._sockets[family]
        self._pump.watch(sock, READ, lambda _: self._accept(family, sock))

    def _close(self, family: int) -> None:
        self._again.forget(family)
        sock = self._sockets.pop(family, None)
        if sock is None:
            return
        resting = self._resting.pop(family, None)
        if resting is not None:
            resting.cancel()
        self._pump.forget(sock)
        sock.close()

    def _report(self, family: int, error: OSError | None) -> None:
        """Report that a port cannot be listened on, and that it can again."""
        what = {"port": self._port, "family": _FAMILIES[socket.AddressFamily(family)]}
        if error is None:
            self._log.info("port-opened", **what)
        else:
            effect = "neighbors cannot connect; they are connected to"
            self._log.warning("port-not-opened", **what, error=error.strerror, effect=effect)

    def _set_keys(self, family: int) -> None:
        """Have the kernel verify those who connect, before they are accepted."""
        sock, known = self._sockets[family], self._keys[family]
        wanted = {
            one.transport.remote: one.transport.key
            for one in self._neighbors.values()
            if one.transport.key and tcp.family_of(one.transport.remote) == family
        }
        for remote in known.keys() - wanted.keys():
            self._set_key(sock, remote, None)
            del known[remote]
        for remote, key in wanted.items():
            if known.get(remote) != key:
                known.pop(remote, None)
                if self._set_key(sock, remote, key):
                    known[remote] = key

    def _set_key(self, sock: socket.socket, remote: str, key: StreamKey | None) -> bool:
        try:
            tcp.set_key(sock, remote, key)
        except OSError as error:
            count_error(self._counters, "key-error", error)
            effect = "it cannot connect"
            self._log.error("key-not-set", neighbor=remote, error=error.strerror, effect=effect)
            return False
        return True

    # -- those who connect ------------------------------------------------------------------

    def _accept(self, family: int, sock: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                made, address = sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                count_error(self._counters, "accept-error", error)
                if is_shortage(error):
                    self._short(error=error.strerror, port=self._port)
                    self._rest(family, _SHORT_REST)
                return
            self._admit(made, address)
        self._rest(family, _REST)

    def _rest(self, family: int, seconds: float) -> None:
        """Accept none for a while; they wait in the queue of the kernel, which is bounded."""
        self._pump.forget(self._sockets[family])
        self._resting[family] = self._loop.call_later(seconds, self._watch, family)

    def _admit(self, made: socket.socket, address: tuple[Any, ...]) -> None:
        """Take a connection of a neighbor; reset one of anybody else."""
        try:
            listener, reason = self._judge(made, address)
            if listener is not None:
                tcp.prepare(made, listener.transport.ttl)
        except OSError as error:  # it is gone already
            count_error(self._counters, "accept-error", error)
            made.close()
            return
        if listener is not None and not self._accepted(listener, made):
            listener, reason = None, "too-many"
        if listener is None:
            tcp.reset(made)
            self._counters[f"refused-{reason}"] += 1
            self._refused(address=address[0], reason=reason)

    def _judge(self, made: socket.socket, address: tuple[Any, ...]) -> tuple[Listener | None, str]:
        """The neighbor at an address, or why the connection is refused. Raises OSError."""
        source = tcp.packed(address[0])
        link = self._link_name(address[3]) if tcp.of_one_link(source) else None
        found = self._neighbors.get((source, link))
        if found is None:
            return None, "no-neighbor"
        transport = found.transport
        if transport.local is not None:
            own = made.getsockname()[0]
            if tcp.packed(own) != tcp.packed(transport.local):
                return None, "other-address"
        if transport.ttl == FROM_LINK and not tcp.came_from_link(made):
            return None, "ttl"
        keys = self._keys[tcp.family_of(transport.remote)]
        if transport.key and keys.get(transport.remote) != transport.key:
            return None, "no-key"
        return found, ""


def who(listener: Listener) -> _Who:
    """By what a neighbor is known that connects."""
    address = tcp.packed(listener.transport.remote)
    return address, listener.transport.link if tcp.of_one_link(address) else None
