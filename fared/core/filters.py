"""Filters: which prefixes are advertised somewhere else, by prefix, length and tag.

A filter is a prefix list as in FRR, with tags: items in order, of which the first that matches
decides; where none matches, the prefix is denied. Both protocols apply filters to what they
redistribute, OSPF to the summaries of area border routers, and IS-IS to leaked prefixes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from fared.core.ids import ADDRESS_BITS, Prefix, parse_prefix

_LONGEST = max(ADDRESS_BITS.values())
_LAST_TAG = 0xFFFFFFFF
_ANY = "any"


class FilterItem(msgspec.Struct, frozen=True):
    """One item: ``permit`` or deny what it matches.

    It matches prefixes inside ``prefix`` (None: of either family) of ``least`` to ``most`` bits,
    with ``tag`` (None: any; 0: none). The text form is that of a prefix list of FRR:
    ``permit 10.0.0.0/8 ge 24 le 28``, ``deny any tag 77``.
    """

    permit: bool
    prefix: Prefix | None = None
    least: int = 0
    most: int = _LONGEST
    tag: int | None = None

    def __str__(self) -> str:
        words = ["permit" if self.permit else "deny"]
        if self.prefix is None:
            words += [_ANY] if self.tag is None else []
        else:
            words += [str(self.prefix), *self._lengths(self.prefix)]
        if self.tag is not None:
            words += ["tag", str(self.tag)]
        return " ".join(words)

    def _lengths(self, prefix: Prefix) -> Iterator[str]:
        if self.least > prefix.length:
            yield f"ge {self.least}"
        elif self.most == self.least:
            return  # without ge and le only the prefix itself
        if self.most < ADDRESS_BITS[prefix.family] or self.least == prefix.length:
            yield f"le {self.most}"

    def places(self) -> Iterator[tuple[Prefix, int, int]]:
        """Yield what it matches, by family: inside a prefix, the least and the greatest length."""
        if self.prefix is not None:
            yield self.prefix, self.least, self.most
            return
        for family, bits in ADDRESS_BITS.items():
            yield Prefix(family, 0, 0), 0, bits


def parse_item(text: str) -> FilterItem:
    """Parse ``permit 10.0.0.0/8 ge 24 le 28 tag 77``. Raises ValueError with what is expected."""
    words = text.split()
    action, rest = (words[0], words[1:]) if words else ("", [])
    if action not in ("permit", "deny"):
        raise ValueError("permit or deny first")
    prefix: Prefix | None = None
    if rest and rest[0] != "tag":
        prefix = None if rest[0] == _ANY else _parse_prefix(rest[0])
        rest = rest[1:]
    elif not rest:
        raise ValueError(f"a prefix, tag or any after {action}")
    given = _parse_numbers(rest)
    tag = given.pop("tag", None)
    if prefix is None:
        if given:
            raise ValueError(f"ge and le after a prefix, such as {action} 0.0.0.0/0 ge 24")
        return FilterItem(action == "permit", tag=tag)
    length, bits = prefix.length, ADDRESS_BITS[prefix.family]
    least = given.get("ge", length)
    most = given.get("le", bits if "ge" in given else length)
    if not length <= least <= most <= bits:
        raise ValueError(f"lengths {length} <= ge <= le <= {bits}")
    return FilterItem(action == "permit", prefix, least, most, tag)


def _parse_prefix(text: str) -> Prefix:
    try:
        return parse_prefix(text)
    except ValueError:
        raise ValueError("a prefix such as 10.0.0.0/8 or 2001:db8::/32, tag or any") from None


def _parse_numbers(words: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for key, number in zip(words[::2], [*words[1::2], ""], strict=False):
        if key not in ("ge", "le", "tag") or key in found:
            raise ValueError("ge, le and tag, each at most once, after the prefix")
        if not number.isdecimal() or int(number) > _LAST_TAG:
            raise ValueError(f"a number after {key}")
        found[key] = int(number)
    return found


_Ranges = dict[tuple[int, int], int]
"""By least and greatest length the first such item, in the order of the list."""


class _Length(NamedTuple):
    """The items inside prefixes of one length: by network shifted right, then by tag."""

    length: int
    shift: int
    networks: dict[int, dict[int | None, _Ranges]]


class Filter(msgspec.Struct, frozen=True, dict=True):
    """A list of items; without a name it is that of ``prefixes`` (``within``).

    The index is made once: an answer takes a look-up for each length of prefix in the list, no
    matter how many items it has.
    """

    name: str
    items: tuple[FilterItem, ...]

    def permits(self, prefix: Prefix, tag: int = 0) -> bool:
        """Whether a prefix with a tag (0: without one) is permitted."""
        at = self.decides(prefix, tag)
        return at is not None and self.items[at].permit

    def decides(self, prefix: Prefix, tag: int = 0) -> int | None:
        """Return the index of the item that decides; None: none matches, so it is denied."""
        return self._first(prefix, prefix.length, prefix.length, tag)

    def told(self, prefix: Prefix, tag: int = 0) -> str:
        """Say which item decides, for people: ``filter pods, item 2: deny any``."""
        if not self.name:
            return "it is inside none of its prefixes"
        at = self.decides(prefix, tag)
        if at is None:
            return f"filter {self.name}: no item matches"
        return f"filter {self.name}, item {at + 1}: {self.items[at]}"

    def unreachable(self) -> Iterator[tuple[int, int]]:
        """Yield each item that never decides, and the item before it that matches all it does.

        Several items that match all of it only together are not found.
        """
        for at, item in enumerate(self.items):
            before = [
                self._first(prefix, least, most, item.tag, at)
                for prefix, least, most in item.places()
            ]
            if None not in before:
                yield at, max(found for found in before if found is not None)

    @functools.cached_property
    def _index(self) -> Mapping[int, tuple[_Length, ...]]:
        made: dict[int, dict[int, _Length]] = {family: {} for family in ADDRESS_BITS}
        for at, item in enumerate(self.items):
            for prefix, least, most in item.places():
                shift = ADDRESS_BITS[prefix.family] - prefix.length
                known = made[prefix.family].setdefault(
                    prefix.length, _Length(prefix.length, shift, {})
                )
                tags = known.networks.setdefault(prefix.network >> shift, {})
                tags.setdefault(item.tag, {}).setdefault((least, most), at)
        return {
            family: tuple(lengths[length] for length in sorted(lengths))
            for family, lengths in made.items()
        }

    def _first(
        self, prefix: Prefix, low: int, high: int, tag: int | None, before: int | None = None
    ) -> int | None:
        """The first item that matches all prefixes inside one, of so many bits; None: none.

        ``tag`` None: whatever their tags. ``before``: only items before this one.
        """
        best = none = len(self.items) if before is None else before
        network = prefix.network
        wanted = (None,) if tag is None else (None, tag)
        for length, shift, networks in self._index[prefix.family]:
            if length > prefix.length:
                break
            tags = networks.get(network >> shift)
            if tags is None:
                continue
            for each in wanted:
                for (least, most), at in tags.get(each, _NOTHING).items():
                    if at >= best:
                        break
                    if least <= low and high <= most:
                        best = at
                        break
        return None if best == none else best


_NOTHING: _Ranges = {}


class Withheld(NamedTuple):
    """Where a filter keeps a prefix out, and the item of it, in words."""

    where: str
    reason: str


def within(prefixes: tuple[Prefix, ...]) -> Filter:
    """Return the filter that permits these prefixes and what is inside them."""
    return Filter(
        "", tuple(FilterItem(True, p, p.length, ADDRESS_BITS[p.family]) for p in prefixes)
    )


def denying(filters: tuple[Filter, ...], prefix: Prefix, tag: int = 0) -> Filter | None:
    """Return the first of several filters that denies a prefix; None: all permit it."""
    for each in filters:
        if not each.permits(prefix, tag):
            return each
    return None


def refusal(filters: tuple[Filter, ...], prefix: Prefix, tag: int = 0) -> str | None:
    """Say why filters keep a route out of redistribution; None: they do not.

    A default route, often that of a management network, is never redistributed by the way.
    """
    if not prefix.length and not filters:
        return "a default route needs a filter that permits it"
    denied = denying(filters, prefix, tag)
    return None if denied is None else denied.told(prefix, tag)
