"""Layouts of link sub-TLVs, of which forged LSPs have ever new ones."""

from __future__ import annotations

import gc
import sys

from fared.protocols.isis.pdu.is_reach import _NeighborLayout


def test_layouts_that_are_forgotten_leave_no_memory():
    """Python keeps 2,000 tuples of each size, and one more for each made of a generator."""
    gc.collect()
    for number in range(1000):
        _NeighborLayout(tuple([(200 + at, number % 200 + at) for at in range(14)]))
    before = sys.getallocatedblocks()
    gc.collect()
    assert before - sys.getallocatedblocks() < 200
