"""Several frames of a packet socket in one system call (recvmmsg), which Python's sockets lack.

A router with 64 neighbors receives an LSP 64 times, each copy a packet: where tens of thousands
arrive in a second, a system call and an exception of an empty socket for each are a part of what
they take. What is read stays in slots of one buffer, until the next call.
"""

from __future__ import annotations

import ctypes
import os
import socket

_IOVEC, _HEADER = 2, 8
"""Words of ``struct iovec`` and ``struct mmsghdr``."""
_IOV, _IOV_LENGTH, _LENGTH = 2, 3, 7
"""Places in ``struct mmsghdr``: msg_iov, msg_iovlen, msg_len."""


class Frames:
    """A buffer of ``slots`` frames, each of ``size`` bytes at most behind its ``start``.

    The rest of longer ones is cut off. ``starts`` has the first bytes of all frames, ``start`` of
    each, one behind the other; ``memory`` holds the others of frame N from ``N * size`` on, and
    zeros behind them.
    """

    def __init__(self, slots: int, size: int, start: int) -> None:
        self.slots, self.size, self.start = slots, size, start
        self.starts, self.memory = bytearray(slots * start), bytearray(slots * size)
        self._filled = [0] * slots
        """The length of the last frame in each slot."""
        word = ctypes.c_size_t
        parts = [
            (ctypes.addressof(ctypes.c_char.from_buffer(buffer)), length)
            for buffer, length in ((self.starts, start), (self.memory, size))
        ]
        each = _IOVEC * len(parts)
        vectors = (word * (each * slots))()
        self._headers = (word * (_HEADER * slots))()
        for slot in range(slots):
            for part, (address, length) in enumerate(parts):
                vectors[each * slot + _IOVEC * part] = address + slot * length
                vectors[each * slot + _IOVEC * part + 1] = length
            at = ctypes.addressof(vectors) + slot * each * ctypes.sizeof(word)
            self._headers[_HEADER * slot + _IOV] = at
            self._headers[_HEADER * slot + _IOV_LENGTH] = len(parts)
        self._vectors = vectors  # the kernel reads them
        self._address = ctypes.addressof(self._headers)
        ratio = ctypes.sizeof(word) // ctypes.sizeof(ctypes.c_uint)
        lengths = memoryview(self._headers).cast("B").cast("I")
        self._lengths = lengths[_LENGTH * ratio :: _HEADER * ratio]
        self._recvmmsg = ctypes.CDLL(None, use_errno=True).recvmmsg
        number, pointer = ctypes.c_uint, ctypes.c_void_p
        self._recvmmsg.argtypes = (ctypes.c_int, pointer, number, ctypes.c_int, pointer)

    def read(self, sock: socket.socket, most: int) -> list[int]:
        """Read what has arrived, at most so many frames; return the bytes of each.

        Raises OSError, BlockingIOError if there is none.
        """
        descriptor, most = sock.fileno(), min(most, self.slots)
        count = self._recvmmsg(descriptor, self._address, most, socket.MSG_DONTWAIT, None)
        if count < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        lengths = self._lengths[:count].tolist()
        if lengths != self._filled[:count]:
            self._blank(lengths)
        return lengths

    def _blank(self, lengths: list[int]) -> None:
        """Write zeros behind frames, where the frame before was longer."""
        for slot, (length, before) in enumerate(zip(lengths, self._filled, strict=False)):
            if length < before:
                at = slot * self.size - self.start
                first = max(length, self.start)
                self.memory[at + first : at + before] = bytes(max(0, before - first))
        self._filled[: len(lengths)] = lengths

    def alike(self, slot: int, count: int) -> bool:
        """Whether so many frames from a slot on have the same start."""
        size = self.start
        first = bytes(self.starts[slot * size : (slot + 1) * size])
        return self.starts.startswith(first * count, slot * size)

    def whole(self, slot: int, length: int) -> bytes:
        """A frame of this length."""
        start, at = self.start, slot * self.size
        first = self.starts[slot * start : slot * start + min(start, length)]
        return bytes(first + self.memory[at : at + max(0, length - start)])
