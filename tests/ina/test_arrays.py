"""Arrays as chunks: what a call takes, and when it copies it."""

import numpy as np
import pytest

from fared.extensions.ina.client.arrays import ArrayPart, Call, FloatSum, exact_floats, integers
from fared.extensions.ina.client.group import check_arrays
from fared.extensions.ina.slots.numbers import ALL_ZERO, quantised, restore
from fared.extensions.ina.slots.packet import NOT_FINITE, DataType, Op, types_of


def only(call: Call) -> ArrayPart:
    (part,) = call.parts
    return part


def test_chunks_are_copied_when_the_first_of_some_is_sent_and_then_no_more():
    array, call = np.arange(16 * 20 + 8, dtype=np.int32), Call()
    integers(call, array, Op.SUM, 64)
    part = only(call)
    assert part.count == 21
    second = part.made(1)
    array[:] = 7
    assert second.values.tolist() == list(range(16, 32))
    assert part.made(15).values.tolist() == list(range(240, 256))
    assert part.made(16).values.tolist() == [7] * 16
    assert part.made(20) == (pytest.approx([7] * 8), types_of(DataType.INT32, Op.SUM), 32, 0, 56, 0)


def test_each_chunk_has_the_control_sum_of_its_values_and_the_receiver_of_its_call():
    rng = np.random.default_rng(5)
    array, call = rng.integers(-(1 << 31), 1 << 31, 16 * 35 + 3, np.int32), Call(receiver=4)
    integers(call, array, Op.SUM, 64)
    part = only(call)
    for at in range(part.count):
        made = part.made(at)
        assert (made.control - int(made.values.sum(dtype=np.int64))) % (1 << 32) == 0
        assert made.receiver == 4


def test_results_are_stored_in_place():
    array, call = np.zeros(40, np.int32), Call()
    integers(call, array, Op.SUM, 64)
    part = only(call)
    part.store(2, np.full(8, 5, np.int32))
    part.store(0, np.full(16, 3, np.int32))
    assert array.tolist() == [3] * 16 + [0] * 16 + [5] * 8


def test_extremes_are_copied_too():
    array, call = np.ones(20, np.float32), Call()
    exact_floats(call, array, Op.MAX, 64)
    copy = only(call).made(0)
    array[:] = 2
    assert copy.values.tolist() == [1.0] * 16
    assert copy.control == 0


def test_chunks_of_floats_are_the_same_one_by_one_as_all_at_once():
    rng = np.random.default_rng(3)
    array = (rng.standard_normal(100) * 10.0 ** rng.integers(-30, 30, 100)).astype(np.float32)
    array[48:64] = 0
    array[70] = np.inf
    made, call = FloatSum(array, 8, DataType.INT32, 64), Call()
    made.add(call)
    found = np.concatenate([made.made(at).values for at in range(made.count)])
    assert np.array_equal(found, quantised(array, made.exponents, 16, 8))
    assert found.any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("data_type", [DataType.INT32, DataType.INT16])
def test_sums_are_restored_as_floats_with_the_bits_of_the_exact_product(data_type):
    """Also of exponents for which a scale is no normal float32, and of sums that are infinite."""
    width = np.iinfo(data_type.dtype)
    rng = np.random.default_rng(6)
    for exponent in (-148, -120, -101, -100, -30, 0, 77, 100, 101, 127, 128, NOT_FINITE, ALL_ZERO):
        array, call = np.zeros(64, np.float32), Call()
        made = FloatSum(array, 8, data_type, 64 * data_type.dtype.itemsize)
        made.exponents[:] = exponent
        made.add(call)
        sums = rng.integers(width.min // 2, width.max // 2, 64, data_type.dtype)
        only(call).store(0, sums)
        exact = restore(sums, exponent, 8, data_type)
        assert np.array_equal(array, exact, equal_nan=True)


def test_arrays_with_memory_in_common_are_refused():
    """The second would be copied after the sum of the first is in it."""
    whole = np.zeros(10, np.int32)
    check_arrays([whole[:5], whole[5:], np.zeros(3, np.float32)])
    with pytest.raises(ValueError, match="memory in common"):
        check_arrays([whole[:6], whole[5:]])
    with pytest.raises(ValueError, match="memory in common"):
        check_arrays([whole, whole])


def test_arrays_that_cannot_be_reduced_in_place_are_refused():
    with pytest.raises(TypeError, match="int64: int32 or float32"):
        check_arrays([np.zeros(3, np.int64)])
    with pytest.raises(ValueError, match="not contiguous"):
        check_arrays([np.zeros(6, np.int32)[::2]])
