"""Requests and dumps against a scripted kernel: interrupted dumps, lost answers, error texts."""

import errno
import struct

import pytest

from fared.kernel.errors import InterruptedDumpError, NetlinkError, PrivilegeError
from fared.kernel.netlink import HEADER, attribute, attributes, u32_attribute
from fared.kernel.requests import RequestSocket

NEWROUTE, GETROUTE = 24, 26
ERROR, DONE, INTERRUPTED = 2, 3, 0x10


class Script:
    """A fake socket: answers each send from a list of functions of the sequence number."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.sent = []
        self.queue = []

    def send(self, data) -> None:
        self.sent.append(data)
        sequences, offset = [], 0
        while offset < len(data):
            length, _, _, sequence, _ = HEADER.unpack_from(data, offset)
            sequences.append(sequence)
            offset += (length + 3) & ~3
        self.queue += self.answers.pop(0)(sequences)

    def recv(self, _size):
        item = self.queue.pop(0)
        if isinstance(item, OSError):
            raise item
        return item


def message(kind, sequence, body=b"", flags=0):
    return HEADER.pack(16 + len(body), kind, flags, sequence, 0) + body


def refusal(sequence, error, text=None, capped=True):
    body = struct.pack("=i", -error) + HEADER.pack(16, NEWROUTE, 0, sequence, 0)
    flags = 0x100 if capped else 0
    if text is not None:
        body += attribute(1, text.encode() + b"\0")
        flags |= 0x200
    return message(ERROR, sequence, body, flags)


class ScriptedSocket(RequestSocket):
    """A socket whose kernel answers as told."""

    def plays(self, *answers) -> Script:
        self.close()
        self._socket = Script(*answers)
        return self._socket


@pytest.fixture
def request_socket():
    return ScriptedSocket()


def dump(flags=0):
    return lambda s: [
        message(NEWROUTE, s[0], b"1234", flags) + message(DONE, s[0], bytes(4), flags)
    ]


def test_an_interrupted_dump_is_read_again(request_socket):
    request_socket.plays(dump(INTERRUPTED), dump())
    assert request_socket.dump(GETROUTE, bytes(12)) == [(NEWROUTE, b"1234")]


def test_a_dump_that_lost_messages_is_read_again(request_socket):
    def lossy(sequences):
        return [OSError(errno.ENOBUFS, ""), *dump()(sequences)]

    request_socket.plays(lossy, dump())
    assert request_socket.dump(GETROUTE, bytes(12)) == [(NEWROUTE, b"1234")]


def test_a_table_that_never_rests_gives_up(request_socket):
    request_socket.plays(*[dump(INTERRUPTED)] * 20)
    with pytest.raises(InterruptedDumpError):
        request_socket.dump(GETROUTE, bytes(12))


def test_failures_are_told_by_position_with_the_words_of_the_kernel(request_socket):
    def answer(s):
        middle = refusal(s[1], errno.EINVAL, "Nexthop id does not exist")
        return [middle, refusal(s[2], errno.EEXIST, capped=False)]

    request_socket.plays(answer)
    failures = request_socket.batch([(NEWROUTE, 0, b"abc")] * 3)
    assert failures[1] == (errno.EINVAL, "Nexthop id does not exist")
    assert failures[2].error == errno.EEXIST
    assert set(failures) == {1, 2}


def test_long_lists_go_out_in_chunks_each_acknowledged_once(request_socket):
    ok = lambda s: [refusal(s[-1], 0)]  # noqa: E731
    script = request_socket.plays(*[ok] * 10)
    assert request_socket.batch([(NEWROUTE, 0, bytes(36))] * 1000) == {}
    assert [8 << 10 <= len(data) <= 32 << 10 for data in script.sent[:-1]] == [True] * 3
    assert len(script.sent) == 4


def test_lost_answers_count_as_failed(request_socket):
    request_socket.plays(lambda s: [OSError(errno.ENOBUFS, "")])
    failures = request_socket.batch([(NEWROUTE, 0, b"")] * 2)
    assert [failures[n].error for n in range(2)] == [errno.ENOBUFS] * 2


def test_a_late_answer_to_an_earlier_chunk_is_nobodys(request_socket):
    stale = lambda s: [refusal((s[0] - 40) & 0xFFFFFFFF, errno.EINVAL), refusal(s[-1], 0)]  # noqa: E731
    request_socket.plays(stale)
    assert request_socket.batch([(NEWROUTE, 0, b"")] * 2) == {}


@pytest.mark.parametrize(
    ("error", "raised"), [(errno.EPERM, PrivilegeError), (errno.EBUSY, NetlinkError)]
)
def test_a_single_request_raises(request_socket, error, raised):
    request_socket.plays(lambda s: [refusal(s[0], error)])
    with pytest.raises(raised):
        request_socket.request(NEWROUTE, 0, b"")


def test_attributes_are_padded_and_read_back():
    packed = attribute(5, b"abc") + u32_attribute(6, 7)
    assert len(packed) == 16
    assert attributes(packed) == {5: b"abc", 6: b"\7\0\0\0"}


@pytest.mark.parametrize("size", [0, 3])
def test_an_answer_too_short_to_tell_an_error_is_one(request_socket, size: int):
    request_socket.plays(lambda s: [message(ERROR, s[0], bytes(size))])
    with pytest.raises(NetlinkError, match="Bad message"):
        request_socket.dump(GETROUTE, bytes(12))


def test_an_error_whose_request_is_cut_off_has_the_words_of_its_number(request_socket):
    refused = struct.pack("=i", -errno.EEXIST)
    request_socket.plays(lambda s: [message(ERROR, s[0], refused, 0x200)])
    assert request_socket.batch([(NEWROUTE, 0, b"")])[0] == (errno.EEXIST, "File exists")
