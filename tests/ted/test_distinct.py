"""Distinct values of an array, without the imports of np.unique."""

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fared.paths.ted.graph import distinct


@given(st.lists(st.integers(0, 20)))
def test_distinct_values_are_those_of_np_unique(values):
    array = np.array(values, np.int64)
    np.testing.assert_array_equal(distinct(array), np.unique(array))


def test_nothing_is_imported_to_find_them():
    code = (
        "import sys, numpy as np; from fared.paths.ted.graph import distinct\n"
        "print(distinct(np.array([3, 1, 3])).tolist(), 'numpy.ma' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1, 3] False"
