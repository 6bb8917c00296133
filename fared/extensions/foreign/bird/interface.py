"""Options of ``interface`` in OSPF of BIRD."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from fared.extensions.foreign.bird.export import is_on
from fared.extensions.foreign.bird.parse import BirdStatement
from fared.extensions.foreign.draft import Draft, Path
from fared.extensions.foreign.rules import Action, Rule, number, why

HELLO, DEAD_COUNT = 10, 4
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


Settings = dict[Path, tuple[Any, BirdStatement]]
"""By the path below the interface, with the line."""


class BirdPort(msgspec.Struct):
    """The options of ``interface`` as far as they are read."""

    draft: Draft
    settings: Settings = msgspec.field(default_factory=dict)
    dead_count: int = DEAD_COUNT
    mode: BirdStatement | None = None
    keys: list[tuple[dict[str, Any], BirdStatement]] = msgspec.field(default_factory=list)


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


OPTIONS: Final = (
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
