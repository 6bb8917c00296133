"""What a protocol of BIRD exports, as far as sources and prefixes express it.

A filter is a chain of conditions: for each source that it may accept, the prefixes that reach
``accept`` are one filter of fared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from fared.core.filters import Filter, FilterItem
from fared.core.ids import ADDRESS_BITS, FAMILY_IPV4, Prefix, parse_prefix
from fared.extensions.foreign.bird.parse import BirdStatement, Token
from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.filters import EVERYTHING, ChainEntry, all_of, in_turn, put_filter
from fared.extensions.foreign.rules import number

_SOURCES: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {"RTS_STATIC": ["static"], "RTS_INHERIT": ["static"], "RTS_DEVICE": ["connected"]}
)
_KINDS: Final = {"static": "static", "direct": "connected", "kernel": "static"}
_UNSET: Final[Mapping[str, Any]] = MappingProxyType({"metric": 10000, "metric-type": 2})
"""Of BIRD, for a route that sets none."""
_DEFAULT: Final = Prefix(FAMILY_IPV4, 0, 0)
_ALL: Final = (EVERYTHING[FAMILY_IPV4],)
_PREFIX: Final = re.compile(r"([\w.:]+/\d+)(\+|-|\{\s*(\d+)\s*,\s*(\d+)\s*\})?")
KERNEL_ONLY: Final = (
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


class ExportStep(NamedTuple):
    """A statement that accepts or rejects some routes, and what it sets.

    ``items`` is a list of prefixes; ``sources`` None: all.
    """

    accept: bool
    items: Sequence[FilterItem]
    sources: Sequence[str] | None = None
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


class Meanings(NamedTuple):
    """What the words of a filter stand for.

    ``kinds``: what ``source = RTS_...`` means, ``protocols``: what ``proto = "..."`` means.
    """

    kinds: Mapping[str, Sequence[str]]
    protocols: Mapping[str, str]
    filters: Mapping[str, BirdStatement]
    family: int = FAMILY_IPV4

    @property
    def everything(self) -> Sequence[FilterItem]:
        """The list of all prefixes."""
        return (EVERYTHING[self.family],)


def redistribute(draft: Draft, line: BirdStatement, others: Others) -> None:
    """Put what ``export ...`` of a channel says into the draft. Raises ValueError."""
    protocols = {name: _KINDS[kind] for name, kind in others.kinds.items() if kind in _KINDS}
    meanings = Meanings(_SOURCES, protocols, others.filters)
    name, steps = read_steps(line, meanings)
    known = [_KINDS[kind] for kind in others.kinds.values() if kind in _KINDS]
    named = [source for step in steps if step.accept for source in step.sources or ()]
    for source in dict.fromkeys([*known, *named]):
        about = [step for step in steps if step.sources is None or source in step.sources]
        items = in_turn([ChainEntry(step.accept, step.items) for step in about])
        settings = [step.options or _UNSET for step in about if step.accept]
        if not items:
            continue
        if any(each != settings[0] for each in settings):
            raise ValueError(f"the filter sets different values for prefixes of {source} routes")
        value = dict(settings[0])
        if source == "static":
            draft.differ(line.source, KERNEL_ONLY)
            if others.static_default and Filter("", tuple(items)).permits(_DEFAULT):
                draft.put(("ospf", "redistribute", "default"), value, line.source)
        if items[0] not in _ALL:
            value = {**value, "filter": put_filter(draft, name, items, line.source)}
        draft.put(("ospf", "redistribute", source), value, line.source)


def read_steps(line: BirdStatement, meanings: Meanings) -> tuple[str, list[ExportStep]]:
    """Return a name for the filter of ``export ...`` or ``import ...``, and its steps.

    Raises ValueError for what they cannot express.
    """
    match line.words[1:]:
        case ["none"]:
            return "", []
        case ["all"]:
            return "", [ExportStep(True, meanings.everything)]
        case ["where", *_]:
            return f"{line.words[0]}ed", [_condition(line.tokens[2:], meanings)]
        case ["filter"]:
            return f"{line.words[0]}ed", list(_steps(line.inside or [], meanings))
        case ["filter", name] if name in meanings.filters:
            return name, list(_steps(meanings.filters[name].inside or [], meanings))
    raise ValueError(f"'{line.source.text}' {_UNKNOWN}")


def _steps(body: Sequence[BirdStatement], meanings: Meanings) -> Iterator[ExportStep]:
    """Read ``if CONDITION then accept; reject;`` and the like."""
    for each in body:
        match each.words:
            case ["accept" | "reject" as end]:
                yield ExportStep(end == "accept", meanings.everything)
                return
            case ["if", *_] if "then" in each.words:
                then = each.words.index("then")
                found = _condition(each.tokens[1:then], meanings)
                rest = each.words[then + 1 :]
                if each.inside is None and rest in (["accept"], ["reject"]):
                    yield found._replace(accept=rest == ["accept"])
                elif each.inside and each.inside[-1].words == ["reject"]:
                    yield found._replace(accept=False)
                else:
                    yield found._replace(options=_options(each.inside or []))
            case _:
                raise ValueError(f"the filter {_UNKNOWN}")


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
    return {**_UNSET, **options}


def _condition(tokens: Sequence[Token], meanings: Meanings) -> ExportStep:
    """Read ``source = RTS_STATIC && net ~ [ 10.0.0.0/8+ ]``, also in parentheses."""
    _check_order(tokens)
    words = [token.text for token in tokens if token.text not in "()"]
    sources: list[str] | None = None
    lists: list[Sequence[FilterItem]] = []
    for part in _split(words, "&&"):
        match part:
            case ["net", "~" | "!~" | "=" | "!=" as sign, *prefixes] if "||" not in part:
                found = list(_prefixes(prefixes, meanings.family, inside="~" in sign))
                lists.append(_others(found, meanings) if sign[0] == "!" else found)
            case _:
                alternatives = _split(part, "||")
                named = [source for each in alternatives for source in _sources(each, meanings)]
                sources = named if sources is None else [s for s in sources if s in named]
    return ExportStep(True, all_of(lists or [meanings.everything]), sources)


def _check_order(tokens: Sequence[Token]) -> None:
    """Refuse what is no conjunction of alternatives: ``&&`` binds closer than ``||``."""
    both = {token.text for token in tokens} >= {"&&", "||"}
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if both and token.text == ("&&" if depth else "||"):
            raise ValueError(f"'{token.text}' {_UNKNOWN}")


def _others(items: Sequence[FilterItem], meanings: Meanings) -> list[FilterItem]:
    """Return the list of what none of some prefixes matches."""
    return [*(msgspec.structs.replace(item, permit=False) for item in items), *meanings.everything]


def _split(words: Sequence[str], sign: str) -> Iterator[list[str]]:
    part: list[str] = []
    for word in words:
        if word == sign:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _sources(words: Sequence[str], meanings: Meanings) -> Iterator[str]:
    match words:
        case ["source", "=", name]:
            names = [name]
        case ["source", "~", "[", *listed, "]"]:
            names = [name for name in listed if name != ","]
        case ["proto", "=", name] if name in meanings.protocols:
            yield meanings.protocols[name]
            return
        case _:
            raise ValueError(f"'{' '.join(words)}' {_UNKNOWN}")
    for name in names:
        if name not in meanings.kinds:
            raise ValueError(f"fared redistributes no {name}: connected, static and default")
        yield from meanings.kinds[name]


def _prefixes(words: Sequence[str], family: int, *, inside: bool) -> Iterator[FilterItem]:
    """Yield what a set of prefixes matches; ``inside``: a prefix alone has what is inside too."""
    listed = words[:1] == ["["]
    for word in words:
        if word in "[],":
            continue
        found = _PREFIX.fullmatch(word)
        if found is None:
            raise ValueError(f"'{word}' {_UNKNOWN}")
        prefix = parse_prefix(found[1])
        length, bits = prefix.length, ADDRESS_BITS[prefix.family]
        if prefix.family != family:
            raise ValueError(f"'{word}' is no prefix of IPv{family}")
        least, most = length, length
        if found[3]:
            least, most = number(found[3]), min(number(found[4]), bits)
        elif found[2] == "-":
            least = 0
        elif found[2] == "+" or (inside and not listed):
            most = bits
        for shorter in range(least, min(length, most + 1)):  # the prefixes around it
            around = ip_network(str(prefix)).supernet(new_prefix=shorter)
            yield FilterItem(True, parse_prefix(str(around)), shorter, shorter)
        if max(least, length) <= most:
            yield FilterItem(True, prefix, max(least, length), most)


def static_default(protocol: BirdStatement) -> bool:
    """Whether a static protocol has a default route."""
    routes = [each.words for each in protocol.inside or ()]
    return any(words[:2] == ["route", "0.0.0.0/0"] for words in routes)


def is_on(words: Sequence[str]) -> bool:
    """Read a switch: nothing, yes, on or true."""
    return not words or words[0] in ("yes", "on", "true")


KINDS: Final[Mapping[str, str]] = _KINDS
