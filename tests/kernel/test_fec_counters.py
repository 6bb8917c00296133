"""FEC counters: requests and answers byte for byte, and a kernel whose devices have none."""

import errno
import struct
from pathlib import Path

import pytest

from fared.kernel.fec_counters import FecCounters, fec_request, uncorrectable

LITTLE = pytest.mark.skipif(
    struct.pack("=H", 1) != b"\1\0", reason="bytes of a little-endian machine"
)
REQUEST = bytes.fromhex(
    "1d010000"  # ETHTOOL_MSG_FEC_GET, version 1
    "14000180"  # ETHTOOL_A_FEC_HEADER, nested
    "0800010007000000"  # ETHTOOL_A_HEADER_DEV_INDEX 7
    "0800030004000000"  # ETHTOOL_A_HEADER_FLAGS ETHTOOL_FLAG_STATS
)
HEAD = (
    "1e010000"  # ETHTOOL_MSG_FEC_GET_REPLY
    "1800018008000100070000000a00020073777031" + "0000" + "0000"  # header: 7, "swp1"
    "0500030001000000"  # ETHTOOL_A_FEC_AUTO
    "0800040033000000"  # ETHTOOL_A_FEC_ACTIVE
)
STATISTICS = (
    "40000580"  # ETHTOOL_A_FEC_STATS, nested
    "04000100"  # ETHTOOL_A_FEC_STAT_PAD
    "1c000200" + "0001000000000000" + "ff00000000000000" + "0100000000000000"  # corrected
    "1c000300" + "9100000000000000" + "8000000000000000" + "1100000000000000"  # uncorrectable
)
"""256 blocks corrected, 145 not: 128 of lane 0 and 17 of lane 1."""


@LITTLE
def test_the_request_is_that_of_linux_ethtool_netlink_h():
    assert fec_request(7) == REQUEST


@LITTLE
def test_the_count_of_the_port_is_read_and_not_that_of_a_lane():
    assert uncorrectable(bytes.fromhex(HEAD + STATISTICS)) == 145


@LITTLE
@pytest.mark.parametrize(
    "answer",
    [
        HEAD,  # statistics were not asked for
        HEAD + "04000580",  # the driver has none
        HEAD + "0c000580" + "04000100" + "04000300",  # an array of no numbers
        HEAD + "10000580" + "0c000200" + "0001000000000000",  # corrected ones only
        HEAD + "0c000580" + "08000300" + "91000000",  # half a number
        "1e010000",
        "",
    ],
)
def test_an_answer_without_the_count_is_no_count(answer):
    assert uncorrectable(bytes.fromhex(answer)) is None


@pytest.mark.parametrize("end", range(len(STATISTICS) // 2))
def test_a_cut_answer_is_no_wrong_count(end):
    found = uncorrectable(bytes.fromhex(HEAD + STATISTICS)[: len(HEAD) // 2 + end])
    assert found in (None, 145)


def test_a_device_without_fec_is_asked_once():
    """The loopback of this machine: the kernel answers that this is not supported."""
    ifindex = int(Path("/sys/class/net/lo/ifindex").read_text())
    counters = FecCounters()
    try:
        assert counters.read({"lo": ifindex}) == {}
        assert not counters.may_have(ifindex)
        sequence = counters._sequence
        assert counters.read({"lo": ifindex}) == {}
        assert counters._sequence == sequence
        counters.forget(ifindex)
        assert counters.read({"lo": ifindex}) == {}
        assert counters._sequence == sequence + 1
    finally:
        counters.close()


def test_an_interface_that_is_gone_is_no_error():
    counters = FecCounters()
    try:
        assert counters.read({"gone": 1_000_000}) == {}
    finally:
        counters.close()


def test_other_errors_are_raised_and_the_next_reading_begins_anew(monkeypatch):
    counters = FecCounters()

    def refused(*_):
        raise OSError(errno.EPERM, "not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(counters, "_exchange", refused)
        with pytest.raises(PermissionError):
            counters.read({"lo": 1})
    assert counters.may_have(1)
    assert counters.read({"lo": 1}) == {}
    counters.close()


def test_an_answer_without_the_number_of_ethtool_is_an_error_of_the_kernel(monkeypatch):
    counters = FecCounters()
    monkeypatch.setattr(counters, "_exchange", lambda *_: b"")
    with pytest.raises(OSError, match="number of ethtool"):
        counters.read({"lo": 1})
    counters.close()
