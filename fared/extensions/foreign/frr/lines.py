"""FRR's file as statements: lines with their numbers, and the lines inside of them.

It knows the form of the file and nothing of what lines mean: ``interface_addresses`` is for readers
who want only these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import Final

import msgspec

from fared.extensions.foreign.draft import SourceLine

_ENDS: Final = frozenset(
    ("end", "exit", "exit-vrf", "exit-address-family", "exit-link-params", "exit-authentication")
)
_TOP: Final = frozenset(
    (
        "access-list",
        "agentx",
        "bfd",
        "debug",
        "domainname",
        "fpm",
        "frr",
        "hostname",
        "interface",
        "line",
        "log",
        "mpls",
        "nexthop-group",
        "password",
        "pbr-map",
        "route-map",
        "router",
        "segment-routing",
        "service",
        "username",
        "vrf",
        "zebra",
    )
)
"""First words of lines that stand inside of no other, whatever their indentation."""
_TOP_IP: Final = frozenset(
    (
        "access-list",
        "as-path",
        "community-list",
        "forwarding",
        "import-table",
        "large-community-list",
        "nht",
        "prefix-list",
        "protocol",
        "route",
        "router-id",
    )
)
"""The same behind ``ip`` or ``ipv6``."""
_OPENS: Final = frozenset(
    (
        "address-family",
        "bfd",
        "interface",
        "key",
        "line",
        "link-params",
        "nexthop-group",
        "pbr-map",
        "peer",
        "profile",
        "route-map",
        "router",
        "vrf",
    )
)
"""First words of lines that have lines inside."""


class FrrStatement(msgspec.Struct):
    """A line, in words, and those inside of it."""

    number: int
    text: str
    inside: list[FrrStatement]

    @property
    def words(self) -> list[str]:
        """The words of the line."""
        return self.text.split()

    @property
    def source(self) -> SourceLine:
        """The line for remarks."""
        return SourceLine(self.number, self.text)

    @property
    def lines(self) -> int:
        """The number of lines inside, at any depth."""
        return sum(1 + each.lines for each in self.inside)


def read_statements(text: str) -> list[FrrStatement]:
    """Read a file of any of FRR's daemons, or the integrated one.

    Lines that are not indented belong to the block that is open, as FRR reads them.
    """
    top: list[FrrStatement] = []
    stack: list[tuple[int, FrrStatement]] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0][0] in "!#":
            continue
        if words[0] in _ENDS:
            _close(stack, words[0])
            continue
        depth = len(line) - len(line.lstrip())
        statement = FrrStatement(number, " ".join(words), [])
        while stack and not _belongs(words, depth, stack):
            stack.pop()
        (stack[-1][1].inside if stack else top).append(statement)
        if depth or words[0] in _OPENS:
            stack.append((depth, statement))
    return top


def _close(stack: list[tuple[int, FrrStatement]], word: str) -> None:
    """Leave the innermost block, or all of them."""
    while stack and stack[-1][1].words[0] not in _OPENS:
        stack.pop()
    if word == "end":
        stack.clear()
    elif stack:
        stack.pop()


def _belongs(words: Sequence[str], depth: int, stack: list[tuple[int, FrrStatement]]) -> bool:
    """Whether a line belongs to the innermost statement of the stack."""
    above, statement = stack[-1]
    if depth:
        return depth > above
    head = statement.words[0]
    if head not in _OPENS or _stands_alone(words):
        return False
    return not (len(stack) > 1 and words[0] == head)  # the next key of a chain


def _stands_alone(words: Sequence[str]) -> bool:
    positive = words[1:] if words[0] == "no" and len(words) > 1 else words
    if positive[0] in ("ip", "ipv6"):
        return len(positive) > 1 and positive[1] in _TOP_IP
    if positive[0] == "key":
        return list(positive[1:2]) == ["chain"]
    return positive[0] in _TOP or list(positive[:2]) == ["enable", "password"]


def interface_addresses(
    statements: Sequence[FrrStatement],
) -> Iterator[tuple[str, IPv4Interface | IPv6Interface, FrrStatement]]:
    """Yield the addresses of interfaces, with their lines; those of VRFs too."""
    for head in statements:
        words = head.words
        if words[0] != "interface" or len(words) < 2:
            continue
        for line in head.inside:
            match line.words:
                case ["ip" | "ipv6", "address", text, *_]:
                    try:
                        yield words[1], ip_interface(text), line
                    except ValueError:
                        continue
