"""What somebody forged is refused where it is decoded: numbers, addresses, names."""

from __future__ import annotations

import pytest

from fared.core.wire import DecodeError
from fared.extensions.ina.control.advert import (
    SumCapability,
    decode_capability,
    decode_job,
    encode_capability,
)
from tests.ina.absurd import ABSURD, forged, right

anything_absurd = pytest.mark.parametrize("change", ABSURD.values(), ids=ABSURD)


def test_a_right_job_is_taken():
    assert decode_job(forged(lambda _: None)) == right()


@anything_absurd
def test_an_absurd_job_is_refused_where_a_router_decodes_it(change):
    with pytest.raises(DecodeError):
        decode_job(forged(change))


@pytest.mark.parametrize(
    ("address", "port"), [("0.0.0.0", 54200), ("224.0.0.5", 54200), ("10.0.0.1", 0)]
)
def test_a_router_that_tells_an_absurd_address_does_not_sum(address, port):
    with pytest.raises(DecodeError):
        decode_capability(encode_capability(SumCapability(address, port, 1, 1 << 20)))


def test_a_reason_that_steers_terminals_is_made_printable():
    found = decode_job(forged(lambda job: job.update(reason="created\x1b[2J\u202e")))
    assert found.job.reason == "created\\x1b[2J\\u202e"
