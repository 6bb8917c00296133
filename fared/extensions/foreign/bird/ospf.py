"""``protocol ospf v2`` of BIRD."""

from __future__ import annotations

import fnmatch
from ipaddress import ip_network
from typing import Any, Final

import msgspec

from fared.core.ids import dotted, parse_area
from fared.extensions.foreign.bird.export import Others, is_on, redistribute
from fared.extensions.foreign.bird.interface import (
    DEAD_COUNT,
    HELLO,
    OPTIONS,
    BirdPort,
    Settings,
)
from fared.extensions.foreign.bird.parse import BirdStatement
from fared.extensions.foreign.draft import Draft, Path
from fared.extensions.foreign.rules import Action, Rule, apply_rules, block, number, why

DEFAULT: Final = "BIRD's default"
_LOOPBACK: Final = "lo"


class BirdOspf(msgspec.Struct):
    """The protocol: what its tables fill in."""

    draft: Draft
    others: Others
    bfd: dict[str, dict[str, Any]]
    """Options of BFD by pattern of interfaces."""
    area: str = ""
    patterns: list[str] = msgspec.field(default_factory=list)


# Interfaces


def _interface(ospf: BirdOspf, line: BirdStatement, *_words: str) -> str | None:
    port = BirdPort(ospf.draft)
    for inner in line.inside or ():
        if reason := apply_rules(OPTIONS, port, inner):
            ospf.draft.leave(inner.source, reason)
    refused = [r for name in _patterns(line) if (r := _pattern(ospf, port, line, name))]
    return "; ".join(refused) or None


def _patterns(line: BirdStatement) -> list[str]:
    """Return the patterns of an interface: with a minus before the quotes, they exclude."""
    found, before = [], ""
    for token in line.tokens[1:]:
        if token.quoted:
            found.append(f"{before}{token.text}")
        elif token.text == ",":
            pass
        elif token.text != "-":
            found.append(f"?{token.text}")
        before = token.text if token.text == "-" and not token.quoted else ""
    return found or ["*"]


def _pattern(ospf: BirdOspf, port: BirdPort, line: BirdStatement, name: str) -> str | None:
    if name[0] in "-?":
        return f"{name.lstrip('?')}: fared knows interfaces by name or pattern"
    first = next((each for each in ospf.patterns if fnmatch.fnmatchcase(name, each)), None)
    ospf.patterns.append(name)
    if first is not None:
        return f"BIRD uses the first pattern, {first!r}, for {name!r} too"
    base = ("ospf", "areas", ospf.area, "interfaces", name)
    ospf.draft.put(base, {}, line.source)
    passive = ("passive",) in port.settings or name == _LOOPBACK
    if passive:
        ospf.draft.put((*base, "passive"), True, line.source)
        settings = {p: port.settings[p] for p in port.settings if p[0] == "cost"}
    else:
        settings = _speaking(ospf, port, base, line, name)
    for path, (value, inner) in settings.items():
        ospf.draft.put((*base, *path), value, inner.source)
    return None


def _speaking(
    ospf: BirdOspf, port: BirdPort, base: Path, line: BirdStatement, name: str
) -> Settings:
    """Put defaults that BIRD and fared do not share; return the settings of the file."""
    settings = dict(port.settings)
    for key, value in (("network-type", "broadcast"), ("hello-interval", HELLO)):
        if (key,) not in settings:
            ospf.draft.put((*base, key), value, line.source, DEFAULT)
    hello = settings.get(("hello-interval",), (HELLO, line))[0]
    if ("dead-interval",) not in settings and port.dead_count != DEAD_COUNT:
        settings["dead-interval",] = hello * port.dead_count, line
    if ("bfd", "enabled") in settings:
        found = [options for key, options in ospf.bfd.items() if fnmatch.fnmatchcase(name, key)]
        for key, value in (found[0] if found else {}).items():
            settings.setdefault(("bfd", key), (value, line))
    _authentication(ospf, port, settings)
    return settings


def _authentication(ospf: BirdOspf, port: BirdPort, settings: Settings) -> None:
    mode = port.mode.words[1:] if port.mode else ["none"]
    keys = [dict(key) for key, _ in port.keys]
    if mode == ["none"] or port.mode is None:
        for _, line in port.keys:
            ospf.draft.leave(line.source, "BIRD does not use the key: no 'authentication'")
        return
    if not keys:
        ospf.draft.leave(port.mode.source, "no password for it in the file: fared needs one")
        return
    if mode == ["simple"]:
        keys = [{"algorithm": "cleartext", "key": keys[0]["key"]}]
    settings["authentication",] = keys[0] if len(keys) == 1 else {"keys": keys}, port.keys[0][1]


# Areas


def _area(ospf: BirdOspf, line: BirdStatement, text: str) -> None:
    ospf.area = dotted(parse_area(text))
    ospf.draft.put(("ospf", "areas", ospf.area), {}, line.source)
    for inner in line.inside or ():
        if reason := apply_rules(_AREA, ospf, inner):
            whole = inner.words[0] != "interface"  # of which other patterns may be taken
            ospf.draft.leave(inner.source, block(inner, reason) if whole else reason)


def _put_area(ospf: BirdOspf, line: BirdStatement, key: str, value: object) -> None:
    ospf.draft.put(("ospf", "areas", ospf.area, key), value, line.source)


def _stub(ospf: BirdOspf, line: BirdStatement, *words: str) -> None:
    if is_on(words):
        _put_area(ospf, line, "type", "stub")


def _summary(ospf: BirdOspf, line: BirdStatement, *words: str) -> None:
    if not is_on(words):
        _put_area(ospf, line, "summary", False)


def _default_cost(ospf: BirdOspf, line: BirdStatement, text: str) -> None:
    _put_area(ospf, line, "default-cost", number(text))


def _networks(ospf: BirdOspf, line: BirdStatement) -> None:
    for each in line.inside or ():
        match each.words:
            case [prefix]:
                options: dict[str, Any] = {}
            case [prefix, "hidden"]:
                options = {"advertise": False}
            case _:
                ospf.draft.leave(each.source, "fared has the prefix, and hidden")
                continue
        at = ("ospf", "areas", ospf.area, "ranges", str(ip_network(prefix)))
        ospf.draft.put(at, options, each.source)


_AREA: Final = (
    Rule("interface ...", _interface),
    Rule("stub ...", _stub),
    Rule("summary ...", _summary),
    Rule("default cost N", _default_cost),
    Rule("networks", _networks),
    Rule("nssa ...", why("fared has no NSSA: make it a stub on all of its routers")),
    Rule(
        "stubnet ...",
        why(
            "fared advertises the networks of its interfaces: 'prefix-suppression'"
            " hides those of links"
        ),
    ),
    Rule("virtual link ...", why("fared has no virtual links")),
)


# The protocol


def _put(*path: str, read: Any = number) -> Action:  # noqa: ANN401
    def keep(ospf: BirdOspf, line: BirdStatement, word: str) -> None:
        ospf.draft.put(("ospf", *path), read(word), line.source)

    return keep


def _ecmp(ospf: BirdOspf, line: BirdStatement, *words: str) -> None:
    match words:
        case (_, "limit", text):
            ospf.draft.put(("ospf", "max-paths"), number(text), line.source)
        case _ if not is_on(words):
            ospf.draft.put(("ospf", "max-paths"), 1, line.source)


def _stub_router(ospf: BirdOspf, line: BirdStatement, *words: str) -> None:
    if is_on(words):
        ospf.draft.put(("ospf", "stub-router"), True, line.source)


def _graceful(ospf: BirdOspf, line: BirdStatement, *words: str) -> None:
    at = ("ospf", "graceful-restart")
    match words:
        case ("time", text, *_):
            ospf.draft.put((*at, "grace-period"), number(text), line.source)
        case ("aware",):
            ospf.draft.put((*at, "helper"), True, line.source)
        case _ if is_on(words):
            ospf.draft.put((*at, "enabled"), True, line.source)
            ospf.draft.put((*at, "helper"), True, line.source)


def _router_id(ospf: BirdOspf, line: BirdStatement, text: str) -> None:
    ospf.draft.put(("router-id",), text, line.source)


def _channel(ospf: BirdOspf, line: BirdStatement, *_words: str) -> None:
    for each in line.inside or ():
        match each.words:
            case ["export", *_]:
                try:
                    redistribute(ospf.draft, each, ospf.others)
                except ValueError as error:
                    ospf.draft.leave(each.source, str(error))
            case ["import", "all"]:
                pass
            case ["import", *_]:
                ospf.draft.leave(each.source, "fared installs all routes of OSPF")
            case _:
                ospf.draft.leave(each.source, "fared has no channels and tables")


RULES: Final = (
    Rule("area A", _area),
    Rule("ipv4 ...", _channel),
    Rule("router id A", _router_id),
    Rule("ecmp ...", _ecmp),
    Rule("stub router ...", _stub_router),
    Rule("graceful restart ...", _graceful),
    Rule("tick ...", why("fared computes at once, and backs off by 'spf' (RFC 8405)")),
    Rule("merge external ...", why("fared takes the best external route of RFC 2328 §16.4")),
    Rule("preference N", why("in BIRD the higher one wins, in fared the lower: 'preference'")),
)
