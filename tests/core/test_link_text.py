"""The spelling of links: ``A-B``, ``A > B``, ``A,B``."""

import pytest

from fared.core import link_text

KNOWN = {"S1", "L2", "pod-1-leaf", "pod-1", "leaf", "a", "b", "a-b", "b-c", "c", "0000.0000.0001"}


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("S1-L2", ("S1", "L2", True)),
        ("S1 - L2", ("S1", "L2", True)),
        ("S1 > L2", ("S1", "L2", False)),
        ("S1>L2", ("S1", "L2", False)),
        ("S1,L2", ("S1", "L2", False)),
        ("pod-1-leaf-S1", ("pod-1-leaf", "S1", True)),
        ("S1-pod-1", ("S1", "pod-1", True)),
        ("pod-1-leaf > pod-1", ("pod-1-leaf", "pod-1", False)),
        ("0000.0000.0001-S1", ("0000.0000.0001", "S1", True)),
        ("S1-nobody", ("S1", "nobody", True)),
        ("no-body,S1", ("no-body", "S1", False)),
    ],
)
def test_each_spelling_is_read(text, ends):
    """Names that are not known are told by whoever knows them."""
    assert link_text.read(text, KNOWN) == ends


def test_what_is_written_is_read_again():
    assert link_text.read(link_text.link("pod-1", "S1"), KNOWN)[:2] == ("pod-1", "S1")
    assert link_text.read(link_text.direction("a-b", "c"), KNOWN)[:2] == ("a-b", "c")


@pytest.mark.parametrize("text", ["S1", "", "S1-", "S1,L2,a", "no-such-router", "S1 > L2 > a"])
def test_what_is_no_link_is_refused(text):
    with pytest.raises(ValueError, match="is not A-B or 'A > B'"):
        link_text.read(text, KNOWN)


def test_hyphens_that_may_be_read_twice_are_refused():
    with pytest.raises(ValueError, match="may be 'a > b-c' or 'a-b > c'"):
        link_text.read("a-b-c", KNOWN)
