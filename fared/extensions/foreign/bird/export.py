"""What a protocol of BIRD exports into OSPF, as far as sources and prefixes express it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network
from typing import Any, Final, NamedTuple

import msgspec

from fared.extensions.foreign.bird.parse import BirdStatement, Token
from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.rules import number

_SOURCES: Final = {"RTS_STATIC": "static", "RTS_INHERIT": "static", "RTS_DEVICE": "connected"}
_KINDS: Final = {"static": "static", "direct": "connected", "kernel": "static"}
_METRIC, _TYPE = 10000, 2
"""Of BIRD, for a route that sets none."""
_PREFIX: Final = re.compile(r"([\w.:]+/\d+)(\+|-|\{\s*(\d+)\s*,\s*(\d+)\s*\})?")
_KERNEL_ONLY: Final = (
    "fared makes no static routes: those of BIRD must be the kernel's, 'ip route add PREFIX via"
    " ADDRESS proto static'"
)
_UNKNOWN: Final = "has no counterpart in fared: it takes sources and prefixes"


class Others(msgspec.Struct):
    """What other protocols of the file have: their kinds by name, and named filters.

    ``static_default``: a static protocol has 0.0.0.0/0.
    """

    kinds: dict[str, str] = msgspec.field(default_factory=dict)
    filters: dict[str, BirdStatement] = msgspec.field(default_factory=dict)
    static_default: bool = False


class _Exported(NamedTuple):
    """Sources, prefixes (empty: all), options; ``wider``: prefixes that fared takes with more."""

    sources: list[str]
    prefixes: list[str]
    options: dict[str, Any]
    wider: list[str]


def redistribute(draft: Draft, line: BirdStatement, others: Others) -> None:
    """Put what ``export ...`` of a channel says into the draft. Raises ValueError."""
    found = _export(line, others)
    if found is None:
        return
    options = found.options or {"metric": _METRIC, "metric-type": _TYPE}
    for source in dict.fromkeys(found.sources):
        value = options | ({"prefixes": found.prefixes} if found.prefixes else {})
        draft.put(("ospf", "redistribute", source), value, line.source)
    if "static" in found.sources:
        draft.differ(line.source, _KERNEL_ONLY)
        if others.static_default and not found.prefixes:
            draft.put(("ospf", "redistribute", "default"), options, line.source)
    for prefix in found.wider:
        text = f"fared takes every prefix inside {prefix}, of any length"
        draft.differ(line.source, text)


def _export(line: BirdStatement, others: Others) -> _Exported | None:
    match line.words[1:]:
        case ["none"]:
            return None
        case ["all"]:
            return _Exported(_all(others), [], {}, [])
        case ["where", *_]:
            return _condition(line.tokens[2:], others)
        case ["filter"]:
            return _filter(line.inside or [], others)
        case ["filter", name] if name in others.filters:
            return _filter(others.filters[name].inside or [], others)
    raise ValueError(f"'{line.source.text}' {_UNKNOWN}")


def _all(others: Others) -> list[str]:
    return [_KINDS[kind] for kind in others.kinds.values() if kind in _KINDS]


def _filter(body: Sequence[BirdStatement], others: Others) -> _Exported | None:
    """Read ``if CONDITION then accept; reject;`` and the like."""
    match [each.words[0] for each in body]:
        case ["accept"]:
            return _Exported(_all(others), [], {}, [])
        case ["reject"]:
            return None
        case ["if"] | ["if", "reject"]:
            first = body[0]
        case _:
            raise ValueError(f"the filter {_UNKNOWN}")
    then = first.words.index("then") if "then" in first.words else 0
    found = _condition(first.tokens[1:then], others)
    if first.inside is None and first.words[then + 1 :] == ["accept"]:
        return found
    return found._replace(options=_options(first.inside or []))


def _options(inside: Sequence[BirdStatement]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for each in inside[:-1]:
        match each.words:
            case ["ospf_metric1" | "ospf_metric2" as name, "=", text]:
                options |= {"metric": number(text), "metric-type": int(name[-1])}
            case ["ospf_tag", "=", text]:
                options["tag"] = int(text, 0)
            case _:
                raise ValueError(f"'{each.source.text}' of the filter {_UNKNOWN}")
    if not inside or inside[-1].words != ["accept"]:
        raise ValueError(f"the filter {_UNKNOWN}")
    return {"metric": _METRIC, "metric-type": _TYPE} | options


def _condition(tokens: Sequence[Token], others: Others) -> _Exported:
    """Read ``source = RTS_STATIC && net ~ [ 10.0.0.0/8+ ]``, also in parentheses."""
    words = [token.text for token in tokens if token.text not in "()"]
    sources: list[str] | None = None
    prefixes: list[str] = []
    wider: list[str] = []
    for part in _split(words, "&&"):
        if part[:2] == ["net", "~"] or part[:2] == ["net", "="]:
            if prefixes:
                raise ValueError(f"two conditions on net: this {_UNKNOWN}")
            for prefix, whole in _prefixes(part[2:]):
                prefixes.append(prefix)
                wider += [] if whole else [prefix]
            continue
        found = [source for each in _split(part, "||") for source in _sources(each, others)]
        sources = found if sources is None else [each for each in sources if each in found]
    return _Exported(_all(others) if sources is None else sources, prefixes, {}, wider)


def _split(words: Sequence[str], sign: str) -> Iterator[list[str]]:
    part: list[str] = []
    for word in words:
        if word == sign:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _sources(words: Sequence[str], others: Others) -> Iterator[str]:
    match words:
        case ["source", "=", name]:
            names = [name]
        case ["source", "~", "[", *listed, "]"]:
            names = [name for name in listed if name != ","]
        case ["proto", "=", name] if others.kinds.get(name) in _KINDS:
            yield _KINDS[others.kinds[name]]
            return
        case _:
            raise ValueError(f"'{' '.join(words)}' {_UNKNOWN}")
    for name in names:
        if name not in _SOURCES:
            raise ValueError(f"fared redistributes no {name}: connected, static and default")
        yield _SOURCES[name]


def _prefixes(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield prefixes, and whether all inside of them is meant."""
    for word in words:
        if word in "[],":
            continue
        found = _PREFIX.fullmatch(word)
        if found is None or found[2] == "-":
            raise ValueError(f"'{word}' {_UNKNOWN}")
        network = ip_network(found[1])
        longest = network.max_prefixlen
        bounds = (number(found[3]), number(found[4])) if found[3] else None
        whole = found[2] == "+" or network.prefixlen == longest
        yield str(network), whole or bounds == (network.prefixlen, longest)


def static_default(protocol: BirdStatement) -> bool:
    """Whether a static protocol has a default route."""
    routes = [each.words for each in protocol.inside or ()]
    return any(words[:2] == ["route", "0.0.0.0/0"] for words in routes)


def is_on(words: Sequence[str]) -> bool:
    """Read a switch: nothing, yes, on or true."""
    return not words or words[0] in ("yes", "on", "true")


KINDS: Final[Mapping[str, str]] = _KINDS
