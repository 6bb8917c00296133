"""The socket to the daemon: one message a packet, never blocking.

If the daemon does not read, changes of a session are merged into the last one, and other messages
are dropped, so that the queue never has more entries than there are sessions.
"""

from __future__ import annotations

import socket

import msgspec

from fared.protocols.bfd.messages import MAX_SIZE, Answer, Request, SessionKey, StateChange


class DaemonLink:
    """Encodes and sends answers, reads and decodes requests."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.dropped = 0
        self._waiting: dict[SessionKey, StateChange] = {}
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Request).decode

    @property
    def blocked(self) -> bool:
        """Whether messages wait for the socket to become writable."""
        return bool(self._waiting)

    def send(self, answer: Answer) -> None:
        """Send a message, or keep a change of a session until that is possible."""
        if not self.blocked and self._try(answer):
            return
        if isinstance(answer, StateChange):
            self._waiting.pop(answer.key, None)
            self._waiting[answer.key] = answer
        else:
            self.dropped += 1

    def flush(self) -> None:
        """Send what waits: the socket is writable."""
        while self._waiting:
            key = next(iter(self._waiting))
            if not self._try(self._waiting[key]):
                return
            del self._waiting[key]

    def _try(self, answer: Answer) -> bool:
        try:
            self.sock.send(self._encode(answer))
        except BlockingIOError:
            return False
        except OSError:
            return True  # the daemon has ended: ``receive`` reports it
        return True

    def receive(self) -> Request | None:
        """Return the next request, None if the daemon has ended.

        Raises BlockingIOError if there is none, msgspec.ValidationError or DecodeError if it is of
        another version.
        """
        try:
            data = self.sock.recv(MAX_SIZE)
        except BlockingIOError:
            raise
        except OSError:
            return None
        return self._decode(data) if data else None
