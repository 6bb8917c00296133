"""Hypothesis strategies for values of declared formats."""

from __future__ import annotations

from hypothesis import strategies as st

from fared.core.wire import F32
from fared.paths.te.attributes import TeAttributes
from fared.paths.te.sub_tlvs import EIGHT_FLOATS, LOSS, METRIC_24, MICROSECONDS, MIN_MAX


def bits(count):
    return st.integers(0, 2**count - 1)


FLOATS = st.floats(width=32, allow_nan=False)
"""NaN is left out as it is not equal to itself; it has tests of its own."""
VALUES = {
    F32: FLOATS,
    METRIC_24: bits(24),
    EIGHT_FLOATS: st.tuples(*[FLOATS] * 8),
    MICROSECONDS: bits(24),
    MIN_MAX: st.tuples(bits(24), bits(24)),
    LOSS: bits(24).map(lambda units: units * 0.000003),
}


def values_of(shape):
    """Values of any format; one that is not listed is an unsigned integer."""
    return VALUES.get(shape, bits(8 * shape.size))


def te_attributes(table):
    """Attributes as a protocol can send them, each of them or not."""
    rows = table.rows.values()
    return st.builds(TeAttributes, **{row.field: st.none() | values_of(row.format) for row in rows})


@st.composite
def anomalies(draw, table, attributes):
    """Some of the types of sub-TLVs that may have the A bit and are sent."""
    rows = (row for row in table.rows.values() if row.a_bit)
    sent = [row.type for row in rows if getattr(attributes, row.field) is not None]
    return tuple(kind for kind in sent if draw(st.booleans()))
