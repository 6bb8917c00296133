"""Arrays as chunks: what a call takes, and when it copies it."""

import numpy as np
import pytest

from fared.ina.client.arrays import Call, FloatSum, extremes, integers
from fared.ina.client.group import check_arrays
from fared.ina.slots.numbers import quantised
from fared.ina.slots.packet import DataType, Op


def test_a_chunk_is_copied_when_it_is_sent_and_then_no_more():
    array, call = np.arange(40, dtype=np.int32), Call()
    integers(call, array, Op.SUM, 64)
    assert len(call.chunks) == 3
    first = call.chunks[0][0]()
    array[:] = 7
    assert first.tolist() == list(range(16))
    assert call.chunks[2][0]().tolist() == [7] * 8


def test_extremes_are_copied_too():
    array, call = np.ones(20, np.float32), Call()
    extremes(call, array, Op.MAX, 64)
    copy = call.chunks[0][0]()
    array[:] = 2
    assert copy.tolist() == [1.0] * 16


def test_chunks_of_floats_are_the_same_one_by_one_as_all_at_once():
    rng = np.random.default_rng(3)
    array = (rng.standard_normal(100) * 10.0 ** rng.integers(-30, 30, 100)).astype(np.float32)
    array[48:64] = 0
    array[70] = np.inf
    made, call = FloatSum(array, 8, DataType.INT32, 64), Call()
    made.add(call)
    found = np.concatenate([source() for source, *_ in call.chunks])
    assert np.array_equal(found, quantised(array, made.exponents, 16, 8))
    assert found.any()


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
