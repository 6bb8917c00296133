"""The packet of in-network aggregation, and floats as integers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.core.wire import DecodeError
from fared.extensions.ina.slots.numbers import (
    ALL_ZERO,
    exponents,
    quantise,
    quantised,
    restore,
    scale_of,
)
from fared.extensions.ina.slots.packet import (
    NOT_FINITE,
    DataType,
    Header,
    Op,
    PacketKind,
    agrees,
    control_of,
    decode_header,
    encode_header,
    header_size,
    largest_payload,
    newer,
    values_of,
)

HEADERS = st.builds(
    Header,
    kind=st.sampled_from(PacketKind),
    job=st.integers(0, 2**32 - 1),
    tree=st.integers(0, 2**16 - 1),
    epoch=st.integers(0, 2**16 - 1),
    sequence=st.integers(0, 2**32 - 1),
    bits=st.integers(0, 2**64 - 1),
    size=st.integers(0, 8).map(lambda count: 8 * count),
    data_type=st.sampled_from(DataType),
    op=st.sampled_from(Op),
    flags=st.integers(0, 3),
    exponent=st.integers(-32768, 32767),
    control=st.integers(-(2**63), 2**63 - 1),
    length=st.sampled_from([64, 128, 256, 4096]),
    set_id=st.integers(0, 255),
    sub_domain=st.integers(0, 255),
    receiver=st.integers(0, 2**16 - 1),
)


def test_the_layout_of_a_packet():
    values = np.array([1, -2], "<i4")
    header = Header(
        PacketKind.DATA, 7, 2, 3, 9, 0b101, 8, flags=2, exponent=-1, control=-1, sub_domain=1,
        receiver=3,
    )  # fmt: skip
    assert (encode_header(header) + values.tobytes()).hex(" ", 4) == (
        "11020010 00000007 00020003 00000009 00080001 ffff0003 ffffffff ffffffff"
        " 00000000 00000005 01000000 feffffff"
    )


@given(HEADERS)
def test_headers_survive_encoding(header):
    data = encode_header(header) + bytes(header.size)
    assert decode_header(data) == header
    assert len(data) == header_size(header.length) + header.size
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            decode_header(data[:end])


@settings(max_examples=300)
@given(st.binary(max_size=100), st.integers(0, 60), HEADERS)
def test_any_bytes_give_a_header_or_an_error(data, at, header):
    good = bytearray(encode_header(header) + bytes(header.size))
    good[at : at + len(data)] = data
    for some in (data, bytes(good)):
        try:
            found = decode_header(some)
        except DecodeError:
            continue
        assert values_of(found, some).nbytes == found.size


def test_payloads_fit_the_mtu_up_and_down():
    assert largest_payload(9000, 64) == 8896
    assert largest_payload(1500, 64) == 1408
    assert 28 + header_size(64) + 12 + 8 + 1408 == 1496
    assert largest_payload(80, 64) == 0


def test_control_sums_add_up_and_tell_a_changed_value():
    parts = [np.array([1, 2, 3], "<i4"), np.array([-7, 2**31 - 1, 5], "<i4")]
    header = Header(PacketKind.RESULT, 1, 0, 1, 0, 3, 12, control=sum(map(control_of, parts)))
    total = parts[0] + parts[1]
    # One value wrapped, as in MPI: the control sum is right up to that.
    assert agrees(header, total)
    total[2] += 1
    assert not agrees(header, total)
    assert agrees(header._replace(op=Op.MAX), total)


def test_serial_numbers_go_around():
    assert newer(1, 65535, 16)
    assert not newer(65535, 1, 16)
    assert not newer(5, 5, 16)


# -- numbers ------------------------------------------------------------------------------------


def parts(workers: int, count: int = 4096) -> list[np.ndarray]:
    rng = np.random.default_rng(14)
    return [rng.standard_normal(count).astype(np.float32) for _ in range(workers)]


def summed(given: list[np.ndarray], data_type=DataType.INT32) -> tuple[np.ndarray, int]:
    exponent = int(max(exponents(part, len(part))[0] for part in given))
    n = len(given)
    integers = [quantise(part, exponent, n, data_type) for part in given]
    total = np.zeros_like(integers[0])
    for part in integers:
        total += part
    return restore(total, exponent, n, data_type), exponent


@pytest.mark.parametrize(
    ("data_type", "shift", "error"), [(DataType.INT32, 27, 2.1e-8), (DataType.INT16, 11, 1.4e-3)]
)
def test_the_error_of_a_sum_of_eight_e14(data_type, shift, error):
    """Half a unit for each worker at most: 3.0e-8 and 2.0e-3 of 2^E."""
    given = parts(8)
    found, exponent = summed(given, data_type)
    exact = sum(part.astype(np.float64) for part in given)
    scaled = np.abs(found.astype(np.float64) - exact).max() / 2.0**exponent
    rounding = 2.0**-24 * np.abs(exact).max() / 2.0**exponent  # of the result to float32
    assert scaled <= 4 * 2.0**-shift + rounding
    assert scaled <= error + rounding


def test_sums_are_the_same_bits_in_any_order_which_floats_are_not_e14():
    big = [np.array([value], np.float32) for value in (1e8, 1.0, -1e8)]
    assert (big[0] + big[1]) + big[2] != (big[0] + big[2]) + big[1]
    orders = [summed([big[at] for at in order])[0] for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2))]
    assert orders[0] == orders[1] == orders[2]


@given(
    st.integers(1, 64),
    st.integers(-120, 120),
    st.sampled_from([DataType.INT32, DataType.INT16]),
)
def test_no_sum_of_largest_values_overflows(workers, scale, data_type):
    largest = np.array([np.nextafter(np.float32(2.0), np.float32(0)) * 2.0**scale], np.float32)
    found, _ = summed([largest] * workers, data_type)
    tolerance = 1e-6 if data_type is DataType.INT32 else 2.0**-7
    assert found[0] == pytest.approx(workers * float(largest[0]), rel=tolerance)


def test_exponents_of_chunks():
    values = np.array([0.5, 1.0, 0.0, 0.0, 3.0, np.nan, 7.9], np.float32)
    assert exponents(values, 2).tolist() == [1, ALL_ZERO, NOT_FINITE, 3]
    assert exponents(values[:0], 2).tolist() == []


def test_chunks_with_nan_are_nan_and_zeros_stay_zeros():
    assert np.isnan(restore(quantise(parts(1)[0], NOT_FINITE, 4), NOT_FINITE, 4)).all()
    assert not restore(quantise(parts(1)[0], ALL_ZERO, 4), ALL_ZERO, 4).any()


@given(
    st.lists(st.floats(width=32), min_size=1, max_size=40),
    st.integers(1, 8),
    st.sampled_from([DataType.INT32, DataType.INT16]),
)
def test_all_chunks_at_once_are_the_same_integers(values, count, data_type):
    given_ = np.array(values, np.float32)
    found = exponents(given_, count)
    whole = quantised(given_, found, count, 8, data_type)
    for at, exponent in enumerate(found.tolist()):
        part = slice(at * count, (at + 1) * count)
        integers = quantise(given_[part], exponent, 8, data_type)
        assert np.array_equal(whole[part], integers)
        if exponent != NOT_FINITE:
            with np.errstate(over="ignore"):
                floats = (integers * scale_of(exponent, 8, data_type)).astype(np.float32)
            assert np.array_equal(floats, restore(integers, exponent, 8, data_type))
