"""Links whose far end is derated, as the databases of areas and levels have them."""

from fared.paths.te.far_ends import FarEnd, FarEnds

ROUTER, ADDRESS = 7, 0x0A800001


def share(ends: FarEnds, area: int) -> float:
    return ends.share(area, ROUTER, (ADDRESS,), 0, alone=False)


def test_what_another_area_has_of_a_router_derates_no_link():
    """Forged where the router is not, nobody flushes it: the link was derated for an hour."""
    ends = FarEnds()
    assert ends.put(0, ROUTER, "lsa", (FarEnd(0.5, (ADDRESS,)),))
    assert (share(ends, 0), share(ends, 1)) == (0.5, 1.0)
    assert ends.put(1, ROUTER, "lsa", (FarEnd(0.25, (ADDRESS,)),))
    assert (share(ends, 0), share(ends, 1)) == (0.5, 0.25)
    assert ends.put(0, ROUTER, "lsa", ())
    assert (share(ends, 0), share(ends, 1)) == (1.0, 0.25)
