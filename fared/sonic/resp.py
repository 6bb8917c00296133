"""The protocol of Redis (RESP2), without I/O: commands are packed, replies read from a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Argument = str | bytes | int
Reply = bytes | int | list["Reply"] | None
"""A reply; an error is a ``ServerError`` in its place."""
_LONGEST_LINE = 1 << 16
_LONGEST_BULK = 1 << 20
_MOST_ELEMENTS = 1 << 20
_DEEPEST = 4
_END = b"\r\n"


class RespError(ValueError):
    """Bytes that are no replies of Redis."""


class ServerError(bytes):
    """The words of an error, in place of a reply."""


def pack(commands: Sequence[Sequence[Argument]]) -> bytes:
    """Pack commands, which are answered in their order."""
    parts: list[bytes] = []
    for command in commands:
        parts.append(b"*%d\r\n" % len(command))
        for argument in command:
            data = argument if isinstance(argument, bytes) else str(argument).encode()
            parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


class ReplyReader:
    """Reads replies from the pieces of a stream; of an incomplete one no byte is read twice."""

    def __init__(self) -> None:
        self._rest = b""
        self._open: list[tuple[int, list[Reply]]] = []
        """Arrays that are not complete: how many elements each has, and those so far."""

    def feed(self, data: bytes) -> Iterator[Reply]:
        """Yield the replies that ``data`` completes. Raises RespError: the stream is of no use."""
        rest, offset = self._rest + data, 0
        while (end := rest.find(_END, offset, offset + _LONGEST_LINE)) >= 0:
            kind, line, after = rest[offset : offset + 1], rest[offset + 1 : end], end + len(_END)
            value: Reply
            if kind == b"$":
                size = _size(line, _LONGEST_BULK)
                if size is None:
                    value = None
                elif len(rest) < after + size + len(_END):
                    break
                else:
                    value, after = rest[after : after + size], after + size + len(_END)
            elif kind == b"*":
                count = _size(line, _MOST_ELEMENTS)
                value = None if count is None else []
                if count and self._opened(count):
                    offset = after
                    continue
            else:
                value = _simple(kind, line)
            offset = after
            if self._fill(value):
                yield self._filled
        self._rest = rest[offset:]
        if end < 0 and len(self._rest) >= _LONGEST_LINE:
            raise RespError("a line without an end")

    def _opened(self, count: int) -> bool:
        if len(self._open) >= _DEEPEST:
            raise RespError("arrays within arrays")
        self._open.append((count, []))
        return True

    def _fill(self, value: Reply) -> bool:
        """Put a value where it belongs; return whether ``_filled`` is a whole reply now."""
        while self._open:
            count, elements = self._open[-1]
            elements.append(value)
            if len(elements) < count:
                return False
            self._open.pop()
            value = elements
        self._filled = value
        return True


def _size(line: bytes, most: int) -> int | None:
    if line == b"-1":
        return None
    if not line.isdigit() or len(line) > len(str(most)) or (size := int(line)) > most:
        raise RespError(f"size {line[:20]!r}")
    return size


def _simple(kind: bytes, line: bytes) -> Reply:
    if kind == b"+":
        return line
    if kind == b"-":
        return ServerError(line)
    if kind == b":" and len(line) <= len(str(1 << 64)) and line.removeprefix(b"-").isdigit():
        return int(line)
    raise RespError(f"reply {kind + line[:20]!r}")
