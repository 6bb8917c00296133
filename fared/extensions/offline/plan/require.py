"""Bounds that a plan must keep: ``n-1 >= 75%``."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from fared.extensions.offline.plan.document import ALIASES, set_named
from fared.extensions.offline.plan.sets import DEGRADE, DOUBLES, GROUPS, LINKS, NODES

Json = dict[str, Any]
_BOUND = re.compile(r"^\s*([\w-]+)\s*(>=|>)\s*(\d+(?:\.\d+)?)\s*%\s*$")
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
        """Return the bound, the part found, and whether it is met."""
        found = set_named(document, self.of)
        left = 1.0 if found is None else float(found["left"])
        met = left > self.least + _EXACT if self.strict else left >= self.least - _EXACT
        return {"bound": self.text, "left": left, "met": met}


def read_bound(text: str) -> CapacityBound:
    """Parse a bound. Raises ValueError."""
    match = _BOUND.match(text)
    if match is None or match[1] not in _NAMES:
        known = ", ".join(_NAMES)
        raise ValueError(f"{text!r} is not SET >= PERCENT%; sets: {known}")
    return CapacityBound(text.strip(), _NAMES[match[1]], match[2] == ">", float(match[3]) / 100)
