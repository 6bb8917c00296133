"""``protocol ospf v2`` of BIRD."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any, Final

import msgspec

from fared.core.ids import dotted, parse_area
from fared.extensions.foreign.bird.export import Others, is_on, redistribute
from fared.extensions.foreign.bird.parse import BirdStatement
from fared.extensions.foreign.draft import Draft, Path
from fared.extensions.foreign.rules import Action, Rule, apply_rules, block, number, why

DEFAULT: Final = "BIRD's default"
_HELLO, _DEAD_COUNT = 10, 4
_TYPES: Final = {
    "broadcast": "broadcast",
    "bcast": "broadcast",
    "pointopoint": "point-to-point",
    "ptp": "point-to-point",
}
_ALGORITHMS: Final = {
    "keyed md5": "md5",
    "md5": "md5",
    "hmac sha1": "hmac-sha-1",
    "hmac sha256": "hmac-sha-256",
    "hmac sha384": "hmac-sha-384",
    "hmac sha512": "hmac-sha-512",
}
_TIMES: Final = {
    "generate from": ("send-start",),
    "generate to": ("send-end",),
    "accept from": ("accept-start",),
    "accept to": ("accept-end",),
    "from": ("send-start", "accept-start"),
    "to": ("send-end", "accept-end"),
}
_TIME_ZONE: Final = "BIRD reads times in the time zone of the machine: this one's was taken"
_PACKETS: Final = "fared sizes its packets and buffers by the MTU"
_LOOPBACK: Final = "lo"


Settings = dict[Path, tuple[Any, BirdStatement]]
"""By the path below the interface, with the line."""


class BirdPort(msgspec.Struct):
    """The options of ``interface`` as far as they are read."""

    draft: Draft
    settings: Settings = msgspec.field(default_factory=dict)
    dead_count: int = _DEAD_COUNT
    mode: BirdStatement | None = None
    keys: list[tuple[dict[str, Any], BirdStatement]] = msgspec.field(default_factory=list)


class BirdOspf(msgspec.Struct):
    """The protocol: what its tables fill in."""

    draft: Draft
    others: Others
    bfd: dict[str, dict[str, Any]]
    """Options of BFD by pattern of interfaces."""
    area: str = ""
    patterns: list[str] = msgspec.field(default_factory=list)


# Interfaces


def _keep(*path: str, read: Any = number) -> Action:  # noqa: ANN401
    def keep(port: BirdPort, line: BirdStatement, word: str, *unit: str) -> None:
        if unit not in ((), ("s",)):
            raise ValueError("expected whole seconds")
        port.settings[path] = read(word), line

    return keep


def _passive(port: BirdPort, line: BirdStatement, *words: str) -> None:
    if is_on(words):
        port.settings["passive",] = True, line


def _type(port: BirdPort, line: BirdStatement, text: str) -> str | None:
    if text not in _TYPES:
        return f"fared has no type {text}: ptp or broadcast"
    port.settings["network-type",] = _TYPES[text], line
    return None


def _dead_count(port: BirdPort, _line: BirdStatement, text: str) -> None:
    port.dead_count = number(text)


def _ttl(port: BirdPort, line: BirdStatement, *words: str) -> None:
    if words == ("tx", "only"):
        port.settings["ttl-security",] = "tx-only", line
    elif is_on(words):
        port.settings["ttl-security",] = True, line


def _bfd(port: BirdPort, line: BirdStatement, *words: str) -> None:
    if not is_on(words):
        return
    port.settings["bfd", "enabled"] = True, line
    for path, value, inner in read_bfd(port.draft, line.inside or ()):
        port.settings["bfd", path] = value, inner


def read_bfd(draft: Draft, lines: Sequence[BirdStatement]) -> list[tuple[str, Any, BirdStatement]]:
    """Return the options of sessions."""
    names = {"min rx interval": ["min-rx"], "min tx interval": ["min-tx"]}
    names["interval"] = ["min-rx", "min-tx"]
    found: list[tuple[str, Any, BirdStatement]] = []
    for line in lines:
        match line.words:
            case ["multiplier", text]:
                found.append(("multiplier", number(text), line))
            case [*name, text, "ms" | "s" | "us" as unit] if " ".join(name) in names:
                value = f"{number(text)}{unit}"
                found += [(path, value, line) for path in names[" ".join(name)]]
            case _:
                draft.leave(line.source, "fared has intervals and the multiplier of a session")
    return found


def _mode(port: BirdPort, line: BirdStatement, *_words: str) -> None:
    port.mode = line


def _password(port: BirdPort, line: BirdStatement, text: str) -> None:
    key: dict[str, Any] = {"key-id": len(port.keys) + 1, "key": text, "algorithm": "md5"}
    for each in line.inside or ():
        _key_option(port.draft, key, each)
    port.keys.append((key, line))


def _passwords(port: BirdPort, line: BirdStatement, *_words: str) -> None:
    for each in line.inside or ():
        _password(port, each, each.words[-1])


def _key_option(draft: Draft, key: dict[str, Any], line: BirdStatement) -> None:
    *name, last = line.words
    match line.words:
        case ["id", text]:
            key["key-id"] = number(text)
        case ["algorithm", *words]:
            if " ".join(words) not in _ALGORITHMS:
                raise ValueError(f"fared has no {' '.join(words)}")
            key["algorithm"] = _ALGORITHMS[" ".join(words)]
        case _ if " ".join(name) in _TIMES:
            local = datetime.fromisoformat(last).astimezone(UTC)
            for which in _TIMES[" ".join(name)]:
                key[which] = local.isoformat().replace("+00:00", "Z")
            draft.differ(line.source, _TIME_ZONE)
        case _:
            draft.leave(line.source, "fared has id, algorithm and times of a key")


_INTERFACE: Final = (
    Rule("cost N", _keep("cost")),
    Rule("hello N ...", _keep("hello-interval")),
    Rule("dead count N", _dead_count),
    Rule("dead N ...", _keep("dead-interval")),
    Rule("retransmit N ...", _keep("retransmit-interval")),
    Rule("priority N", _keep("priority")),
    Rule("stub ...", _passive),
    Rule("type T", _type),
    Rule("ttl security ...", _ttl),
    Rule("bfd ...", _bfd),
    Rule("authentication ...", _mode),
    Rule("passwords", _passwords),
    Rule("password K", _password),
    Rule("check link ...", why("fared does so always")),
    Rule("rx buffer ...", why(_PACKETS)),
    Rule("tx length ...", why(_PACKETS)),
    Rule("ecmp weight ...", why("fared weights by the capacity of paths: 'interfaces: bandwidth'")),
    Rule("wait ...", why("fared waits for one dead interval")),
    Rule("transmit delay ...", why("fared adds a second for each link, as RFC 2328 asks")),
    Rule("neighbors ...", why("fared has no NBMA networks")),
)


def _interface(ospf: BirdOspf, line: BirdStatement, *_words: str) -> str | None:
    port = BirdPort(ospf.draft)
    for inner in line.inside or ():
        if reason := apply_rules(_INTERFACE, port, inner):
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
    for key, value in (("network-type", "broadcast"), ("hello-interval", _HELLO)):
        if (key,) not in settings:
            ospf.draft.put((*base, key), value, line.source, DEFAULT)
    hello = settings.get(("hello-interval",), (_HELLO, line))[0]
    if ("dead-interval",) not in settings and port.dead_count != _DEAD_COUNT:
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
