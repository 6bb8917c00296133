"""The screens of ``docs/troubleshooting.md`` are what routers with these mistakes print."""

from __future__ import annotations

import re

import pytest

from tests.docs.causes import CAUSES, MARK, PAGE, screens

SHOWN: dict[str, dict[str, str]] = {}
for mark in MARK.finditer(PAGE.read_text()):
    SHOWN.setdefault(mark[1], {})[mark[2]] = mark[0].partition("```\n")[2].removesuffix("```\n")
_ALWAYS = ("ospf/carrier", "ospf/key", "ospf/mtu", "isis/network-type", "isis/level")
"""Screens of every run; the reasons of all causes are compared beside FRR and BIRD, too."""
_WORD = re.compile(r"[A-Za-z]{3,}")
_REASONS = re.compile(
    r"^(No adjacency|Refused|Links|FAIL|\S+ on swp1:).*?(?:\n\n|\Z|\nPASS|\nWeights)",
    re.MULTILINE | re.DOTALL,
)


def words(screen: str) -> list[str]:
    """What a screen says about links without an adjacency, without figures and widths."""
    return [word for part in _REASONS.finditer(screen) for word in _WORD.findall(part[0])]


def test_every_cause_has_a_screen():
    named = {name.partition("/")[2] for name in SHOWN}
    assert named >= CAUSES["ospf"].keys() - {"dead-interval"}
    assert {"level", "family", "multi-topology"} <= named


@pytest.mark.netns
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [name if name in _ALWAYS else pytest.param(name, marks=pytest.mark.soak) for name in SHOWN],
)
def test_a_screen_is_what_the_router_prints(name):
    """It says why, in the words of the page."""
    found = screens([(name, command) for command in SHOWN[name]])
    for command, screen in SHOWN[name].items():
        assert words(found[name, command]) == words(screen) != [], found[name, command]
