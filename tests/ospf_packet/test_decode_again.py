"""A router LSA decoded beside its former instance equals one decoded alone."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from fared.core.wire import DecodeError
from fared.protocols.ospf.packet.bodies import RouterLink, RouterLsa
from fared.protocols.ospf.packet.body import LsaBody, decode_again, decode_body, encode_body
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, Lsa, LsType, encode_lsa

LINK = st.tuples(
    st.integers(1, 2), st.integers(0, 1), st.integers(1, 4), st.sampled_from([0] * 9 + [1])
)
LINKS = st.lists(LINK, max_size=6)


def router_lsa(links: list[tuple[int, int, int, int]], more: bytes = b"", size: int = 4) -> Lsa:
    """An LSA of links with TOS metrics of some size, and of other bytes behind them."""
    body = struct.pack(">BxH", 1, len(links))
    for link_id, data, kind, tos in links:
        body += struct.pack(">IIBBH", link_id, data, kind, tos, 10) + bytes(size * tos)
    return lsa(LsType.ROUTER, body + more)


def lsa(ls_type: int, body: bytes) -> Lsa:
    return encode_lsa(
        ls_age=1,
        options=2,
        ls_type=ls_type,
        link_state_id=1,
        advertising_router=1,
        ls_sequence_number=INITIAL_SEQUENCE_NUMBER,
        body=body,
    )


def alone(what: Lsa) -> LsaBody | str | None:
    try:
        return decode_body(what)
    except DecodeError as error:
        return str(error)


def after(what: Lsa, former: Lsa, body: LsaBody | None) -> LsaBody | str | None:
    try:
        return decode_again(what, former.raw, body)
    except DecodeError as error:
        return str(error)


@st.composite
def instances(draw) -> tuple[Lsa, Lsa]:
    """Two instances: the second lacks some links, and has others, or is malformed."""
    links = draw(LINKS)
    low, lost = draw(st.integers(0, 6)), draw(st.integers(0, 2))
    less = links[:low] + draw(st.lists(LINK, max_size=2)) + links[low + lost :]
    ends = st.sampled_from([b"", b"", b"", b"\0", bytes(4), bytes(12)])
    size = draw(st.sampled_from([4, 4, 0]))
    before, now = router_lsa(links, draw(ends)), router_lsa(less, draw(ends), size)
    if draw(st.integers(0, 9)) == 0:
        now = lsa(LsType.ROUTER, now.raw[20 : 20 + draw(st.integers(0, 30))])
    return before, now


@given(instances())
def test_a_router_lsa_is_decoded_as_without_its_former_instance(two):
    before, now = two
    body = alone(before)
    assert after(now, before, None if isinstance(body, str) else body) == alone(now)


def test_links_that_both_list_are_the_same_objects():
    links = [RouterLink(1, number, number, 10) for number in range(9)]
    before = lsa(LsType.ROUTER, encode_body(RouterLsa(0, tuple(links))))
    former = decode_body(before)
    new = RouterLink(1, 77, 77, 10)
    now = lsa(LsType.ROUTER, encode_body(RouterLsa(2, (*links[:3], new, *links[5:]))))
    body = decode_again(now, before.raw, former)
    assert isinstance(former, RouterLsa)
    assert isinstance(body, RouterLsa)
    assert body == decode_body(now)
    kept = [*former.links[:3], *former.links[5:]]
    assert [id(k) for k in body.links if k != new] == [id(k) for k in kept]


def test_other_lsas_are_decoded_as_ever():
    before = lsa(LsType.ROUTER, encode_body(RouterLsa(0, (RouterLink(1, 1, 1, 1),))))
    now = lsa(LsType.NETWORK, before.raw[20:])
    assert decode_again(now, before.raw, decode_body(before)) == decode_body(now)


def test_bytes_that_are_a_link_only_in_the_new_instance():
    """Its one link is 12 bytes of the former one, which begin within a link."""
    before = router_lsa([(1, 7, 1, 1)])
    now = lsa(LsType.ROUTER, bytes((0, 0, 0, 1)) + before.raw[-12:])
    assert decode_again(now, before.raw, decode_body(before)) == decode_body(now)


def test_a_link_that_ends_within_its_tos_metrics_is_malformed_after_any_instance():
    before = router_lsa([(1, 1, 1, 0), (1, 2, 1, 0)])
    now = router_lsa([(1, 1, 1, 0), (1, 3, 1, 1)], size=0)
    assert isinstance(alone(now), str)
    assert after(now, before, decode_body(before)) == alone(now)
