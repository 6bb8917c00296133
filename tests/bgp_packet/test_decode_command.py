"""``fared-cli decode --proto bgp``: documents of messages, and of the streams of captures."""

import json
import struct
from pathlib import Path

import dpkt
import pytest
from click.testing import CliRunner

from fared.core.ids import parse_dotted, parse_prefix
from fared.extensions.offline.bgp.capture import read_messages
from fared.extensions.offline.cli.decode import decode
from fared.protocols.bgp.packet.as_path import sequence
from fared.protocols.bgp.packet.attributes import AsPath, Origin, attributes_of
from fared.protocols.bgp.packet.capabilities import FourOctetAs, multiprotocol
from fared.protocols.bgp.packet.codec import encode_message
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.messages import Keepalive, OpenMessage, RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop

NEAR, FAR = (b"\x0a\x80\x00\x00", 40000), (b"\x0a\x80\x00\x01", 179)
LOCAL = (b"\xfe\x80" + bytes(13) + b"\x01", 179), (b"\xfe\x80" + bytes(13) + b"\x02", 50000)
SYN, ACK = 2, 16


def encoded(message, coding=None):
    return b"".join(encode_message(message, coding))


def update(prefix, coding=None):
    hop = BgpNextHop(4, parse_dotted("10.128.0.0"))
    attributes = attributes_of((Origin(0), AsPath(sequence(65001, 65002))))
    announced = RouteGroup(hop, (parse_prefix(prefix),))
    return encoded(Update((), (announced,), attributes), coding)


def opened(*capabilities):
    return encoded(
        OpenMessage(65001, 9, parse_dotted("10.9.1.1"), (multiprotocol(4), *capabilities))
    )


OPEN, KEEPALIVE = opened(FourOctetAs(65001)), encoded(Keepalive())
UPDATES = [update(f"10.0.{number}.0/24") for number in range(3)]
STREAM = OPEN + KEEPALIVE + b"".join(UPDATES)


def run(*arguments, stdin=None):
    return CliRunner().invoke(decode, ["--proto", "bgp", *arguments], input=stdin)


def documents(*arguments, code=0):
    result = run("--json", *arguments)
    assert result.exit_code == code, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def segment(sequence_number, payload=b"", *, flags=ACK, ends=(NEAR, FAR), fragment=0):
    """A frame of Ethernet; checksums are not looked at."""
    (source, near), (destination, far) = ends
    ports = (near, far, sequence_number % (1 << 32), 0, 5 << 4, flags, 0, 0, 0)
    tcp = struct.pack(">HHIIBBHHH", *ports) + payload
    if len(source) == 16:
        header = struct.pack(">IHBB", 6 << 28, len(tcp), 6, 1) + source + destination
        return bytes(12) + b"\x86\xdd" + header + tcp
    fields = (0x45, 0, 20 + len(tcp), 1, fragment, 1, 6, 0)
    packet = struct.pack(">BBHHHBBH", *fields) + source + destination + tcp
    return bytes(12) + b"\x08\x00" + packet + bytes(max(0, 46 - len(packet)))


def capture(tmp_path, frames):
    path = tmp_path / "a.pcap"
    with path.open("wb") as file:
        out = dpkt.pcap.Writer(file)
        for number, frame in enumerate(frames):
            out.writepkt(frame, ts=number)
    return str(path)


def kinds(found):
    return [document["packet"]["message"] if document["ok"] else "bad" for document in found]


WHOLE = ["open", "keepalive", "update", "update", "update"]


def test_one_message_in_hex():
    (document,) = documents("--reencode", UPDATES[0].hex())
    assert (document["proto"], document["form"], document["identical"]) == ("bgp", "packet", True)
    assert "10.0.0.0/24" in json.dumps(document["packet"])


def test_a_malformed_message_says_where():
    (document,) = documents(bytes(19).hex(), code=1)
    assert document["error"]["message"] == "the marker of a message is not all ones"
    assert run((KEEPALIVE[:-1] + b"\x09").hex()).exit_code == 1


def test_messages_in_one_segment_and_over_many(tmp_path):
    """A connection from its first segment, whose number is about to wrap."""
    start = (1 << 32) - 30
    frames = [segment(start - 1, flags=SYN), segment(start, STREAM)]
    found = documents(capture(tmp_path, frames))
    assert kinds(found) == WHOLE
    assert {d["frame"] for d in found} == {2}
    assert (found[0]["source"], found[0]["destination"]) == ("10.128.0.0:40000", "10.128.0.1:179")
    frames = [
        frames[0],
        *(segment(start + at, STREAM[at : at + 7]) for at in range(0, len(STREAM), 7)),
    ]
    assert kinds(documents(capture(tmp_path, frames))) == WHOLE


@pytest.mark.parametrize("ends", [(NEAR, FAR), (FAR, NEAR), LOCAL])
def test_segments_out_of_order_and_sent_again(tmp_path, ends):
    parts = [(at, STREAM[at : at + 40]) for at in range(0, len(STREAM), 40)]
    order = [0, 2, 2, 1, 0, 4, 3, *range(5, len(parts)), 1]
    frames = [segment(99, flags=SYN, ends=ends)]
    frames += [segment(100 + parts[n][0], parts[n][1], ends=ends) for n in order]
    # once more with other borders, as a sender does that has more to send by then
    frames.insert(4, segment(100 + 30, STREAM[30:100], ends=ends))
    assert kinds(documents(capture(tmp_path, frames))) == WHOLE


def test_link_local_ends_are_in_brackets(tmp_path):
    (document,) = documents(capture(tmp_path, [segment(1, KEEPALIVE, ends=LOCAL)]))
    assert (document["source"], document["destination"]) == ("[fe80::1]:179", "[fe80::2]:50000")


def test_a_capture_that_begins_inside_a_message(tmp_path):
    cut = len(OPEN) - 5
    frames = [segment(7, STREAM[cut : cut + 30]), segment(37, STREAM[cut + 30 :])]
    assert kinds(documents(capture(tmp_path, frames))) == WHOLE[1:]


def test_a_segment_that_the_capture_does_not_have(tmp_path):
    """More than a megabyte behind it: the stream goes on at the next marker."""
    many = b"".join(update(f"10.{n >> 8}.{n & 255}.0/24") for n in range(600)) * 40
    parts = [(at, many[at : at + 1448]) for at in range(0, len(many), 1448)]
    frames = [
        segment(0, OPEN),
        *(segment(len(OPEN) + at, part) for at, part in parts if at != 1448),
    ]
    found = [one.data for one in read_messages(Path(capture(tmp_path, frames)))]
    assert {data[18] for data in found} == {1, 2}
    assert len(found) > 0.95 * 24_000


def test_bytes_that_are_no_message(tmp_path):
    """The next message is found; the capture is not well formed."""
    frames = [segment(0, KEEPALIVE + bytes(30) + KEEPALIVE)]
    result = run(capture(tmp_path, frames))
    assert result.exit_code == 1
    assert "the marker of a message is not all ones" in result.stderr
    assert kinds(documents(capture(tmp_path, frames), code=1)) == ["keepalive", "bad", "keepalive"]


def test_the_open_messages_decide_about_as_numbers(tmp_path):
    """RFC 6793: two octets, unless both speakers have the capability."""
    narrow = update("10.0.0.0/24", Coding(four_octet_as=False))
    back = (FAR, NEAR)
    frames = [segment(0, opened()), segment(0, OPEN, ends=back), segment(len(opened()), narrow)]
    *_, last = documents("--reencode", capture(tmp_path, frames))
    assert last["identical"]
    assert last["packet"]["attributes"]["as_path"] == "65001 65002"


def test_other_packets_of_a_capture(tmp_path):
    other = (NEAR[0], 5), (FAR[0], 80)
    frames = [bytes(60), segment(0, KEEPALIVE, ends=other), segment(0, KEEPALIVE, fragment=0x2000)]
    frames += [segment(0), segment(0, KEEPALIVE)[:40]]
    result = run(capture(tmp_path, frames))
    assert result.exit_code == 1
    assert "no BGP messages" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--form", "lsa"], "omit --form"),
        (["--form", "tlvs"], "omit --form"),
        (["--auth", "md5:1:key"], "decoded without a key"),
    ],
)
def test_options_of_other_protocols(arguments, hint):
    result = run(*arguments, KEEPALIVE.hex())
    assert result.exit_code == 2
    assert hint in result.stderr
