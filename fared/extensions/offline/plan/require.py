"""Bounds that a plan must keep: ``n-1 >= 75%``, ``oversubscription <= 1``."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from fared.extensions.offline.plan.document import ALIASES, part, set_named
from fared.extensions.offline.plan.sets import DEGRADE, DOUBLES, GROUPS, LINKS, NODES

Json = dict[str, Any]
OVERSUBSCRIPTION = "oversubscription"
_BOUND = re.compile(r"^\s*([\w-]+)\s*(>=|>)\s*(\d+(?:\.\d+)?)\s*%\s*$")
_RATIO = re.compile(rf"^\s*{OVERSUBSCRIPTION}\s*(<=|<)\s*(\d+(?:\.\d+)?)\s*$")
_NAMES = {name: name for name in (LINKS, NODES, GROUPS, DOUBLES, DEGRADE)} | {
    alias: name for name, alias in ALIASES.items()
}
_EXACT = 1e-9


class CapacityBound(msgspec.Struct, frozen=True):
    """The part of its capacity that every pair keeps whatever fails of a set (0..1)."""

    text: str
    of: str
    strict: bool
    least: float

    def check(self, document: Json) -> Json:
        """Return the bound, the part found, also in words, and whether it is met."""
        found = set_named(document, self.of)
        left = 1.0 if found is None else float(found["left"])
        met = left > self.least + _EXACT if self.strict else left >= self.least - _EXACT
        words = f"{part(left)} is left"
        return {"bound": self.text, "left": left, "met": met, "found": words}


class RatioBound(msgspec.Struct, frozen=True):
    """The most that the hosts of a router send, over the capacity of its links to routers."""

    text: str
    strict: bool
    most: float
    of: str = OVERSUBSCRIPTION

    def check(self, document: Json) -> Json:
        """Return the bound, the worst router and its ratio, and whether it is met."""
        worst = document[OVERSUBSCRIPTION]
        ratio = float(worst["ratio"])
        met = ratio < self.most - _EXACT if self.strict else ratio <= self.most + _EXACT
        words = f"{worst['router']} has {ratio:.4g}"
        return {"bound": self.text, "ratio": ratio, "met": met, "found": words}


Bound = CapacityBound | RatioBound


def read_bound(text: str) -> Bound:
    """Parse a bound. Raises ValueError."""
    ratio = _RATIO.match(text)
    if ratio is not None:
        return RatioBound(text.strip(), ratio[1] == "<", float(ratio[2]))
    match = _BOUND.match(text)
    if match is None or match[1] not in _NAMES:
        known = ", ".join(_NAMES)
        forms = f"SET >= PERCENT%, or {OVERSUBSCRIPTION} <= N"
        raise ValueError(f"{text!r} is not {forms}; sets: {known}")
    return CapacityBound(text.strip(), _NAMES[match[1]], match[2] == ">", float(match[3]) / 100)
