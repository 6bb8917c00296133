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
    """A buffer of ``slots`` frames, each of ``size`` bytes at most: the rest of others is cut off.

    ``memory`` holds frame N from ``N * size`` on.
    """

    def __init__(self, slots: int, size: int) -> None:
        self.slots, self.size = slots, size
        self.memory = bytearray(slots * size)
        word = ctypes.c_size_t
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        vectors = (word * (_IOVEC * slots))()
        self._headers = (word * (_HEADER * slots))()
        for slot in range(slots):
            vectors[_IOVEC * slot] = start + slot * size
            vectors[_IOVEC * slot + 1] = size
            at = ctypes.addressof(vectors) + slot * _IOVEC * ctypes.sizeof(word)
            self._headers[_HEADER * slot + _IOV] = at
            self._headers[_HEADER * slot + _IOV_LENGTH] = 1
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
        return self._lengths[:count].tolist()
