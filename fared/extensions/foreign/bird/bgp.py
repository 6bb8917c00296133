"""``protocol bgp`` of BIRD: the statements of a neighbor, and of its channels."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Final, NamedTuple

import msgspec

from fared.config.bgp_instead import NEIGHBOR, ROUTER
from fared.extensions.foreign.bird.export import is_on
from fared.extensions.foreign.bird.interface import read_bfd
from fared.extensions.foreign.bird.parse import BirdStatement
from fared.extensions.foreign.draft import Draft, Path
from fared.extensions.foreign.rules import Action, Rule, apply_rules, number, why

FAMILIES: Final = {"ipv4": 4, "ipv6": 6}
_ALWAYS: Final = "fared does so always"
_DECISION: Final = "fared decides by RFC 4271 §9.1.2, and uses all paths that are equal then"
_OWN: Final = "fared has one name for each neighbor: its address, or the interface"
_COMMUNITY: Final = "fared sets GRACEFUL_SHUTDOWN alone, and passes other communities on"


class Written(NamedTuple):
    """A value with the statement that it comes from."""

    value: Any
    statement: BirdStatement


class BirdChannel(msgspec.Struct):
    """A family of a neighbor: what passes, the last word of the template and of the protocol."""

    statement: BirdStatement
    policies: dict[str, BirdStatement] = msgspec.field(default_factory=dict)


class BirdPeer(msgspec.Struct):
    """A neighbor as far as it is read. ``settings`` by the path below it in ``fared.yaml``."""

    draft: Draft
    statement: BirdStatement
    settings: dict[Path, Written] = msgspec.field(default_factory=dict)
    router: dict[Path, Written] = msgspec.field(default_factory=dict)
    system: Written | None = None
    remote: Written | None = None
    address: Written | None = None
    interface: Written | None = None
    channels: dict[str, BirdChannel] = msgspec.field(default_factory=dict)


def read_peer(draft: Draft, head: BirdStatement) -> BirdPeer:
    """Read a protocol; lines that are not taken are listed."""
    peer = BirdPeer(draft, head)
    for line in head.inside or ():
        reason = apply_rules(RULES, peer, line)
        if reason is not None:
            draft.leave(line.source, reason)
    return peer


# Who it is


def _local(peer: BirdPeer, line: BirdStatement, *words: str) -> str | None:
    rest = list(words)
    if rest and rest[0] not in ("as", "port"):
        peer.settings["local-address",] = Written(str(ip_address(rest.pop(0))), line)
    while len(rest) > 1:
        word, text, *rest = rest
        if word == "as":
            peer.system = Written(number(text), line)
        else:
            return "port of bgp is that of the router"
    return None


def _neighbor(peer: BirdPeer, line: BirdStatement, *words: str) -> str | None:
    rest = [word for word in words if word != "%"]
    if rest[:1] == ["range"]:
        if not rest[1:2] or not ip_address(rest[1].partition("/")[0]).is_link_local:
            return ROUTER["listen-range"]
        rest = rest[2:]
    elif rest and rest[0] not in ("as", "port", "internal", "external"):
        address = ip_address(rest.pop(0))
        if not address.is_link_local:
            peer.address = Written(str(address), line)
        elif "%" in words:
            peer.interface = Written(rest.pop(0), line)
    while rest:
        match rest:
            case ["as", text, *rest]:
                peer.remote = Written(number(text), line)
            case ["internal" | "external" as text, *rest]:
                peer.remote = Written(text, line)
            case ["port", text, *rest]:
                peer.settings["port",] = Written(number(text), line)
            case _:
                return "fared has the address of a neighbor, its AS and its port"
    return None


def _interface(peer: BirdPeer, line: BirdStatement, name: str) -> None:
    peer.interface = Written(name, line)


# Settings


def _set(*path: str, read: Any = number) -> Action:  # noqa: ANN401
    def keep(peer: BirdPeer, line: BirdStatement, word: str) -> None:
        peer.settings[path] = Written(read(word), line)

    return keep


def _switch(*path: str) -> Action:
    def keep(peer: BirdPeer, line: BirdStatement, *words: str) -> None:
        peer.settings[path] = Written(is_on(words), line)

    return keep


def _of_router(*path: str, read: Any = number) -> Action:  # noqa: ANN401
    def keep(peer: BirdPeer, line: BirdStatement, word: str) -> None:
        peer.router[path] = Written(read(word), line)

    return keep


def _graceful(peer: BirdPeer, line: BirdStatement, *words: str) -> None:
    at = "graceful-restart"
    if words == ("aware",):
        peer.router[at, "helper"] = Written(True, line)
    elif is_on(words):
        peer.router[at, "enabled"] = Written(True, line)
    else:
        peer.router[at, "helper"] = Written(False, line)


def _bfd(peer: BirdPeer, line: BirdStatement, *words: str) -> None:
    peer.settings["bfd", "enabled"] = Written(is_on(words) or words == ("graceful",), line)
    for path, value, inner in read_bfd(peer.draft, line.inside or ()):
        peer.settings["bfd", path] = Written(value, inner)


def _instead(word: str) -> Action:
    return why(NEIGHBOR.get(word) or ROUTER[word])


def _if_on(reason: str) -> Action:
    """Return an action for a switch that fared has not: off is as here."""

    def tell(_peer: BirdPeer, _line: BirdStatement, *words: str) -> str | None:
        return reason if is_on(words) else None

    return tell


def _is(*, on: bool) -> Action:
    """Return an action for a switch that fared has always one way."""

    def tell(_peer: BirdPeer, _line: BirdStatement, *words: str) -> str | None:
        return None if is_on(words) == on else f"fared has it always {'on' if on else 'off'}"

    return tell


# Channels


def _channel(peer: BirdPeer, line: BirdStatement, *words: str) -> str | None:
    family = line.words[0]
    if words and words != ("unicast",):
        return ROUTER["evpn"]
    channel = peer.channels.setdefault(family, BirdChannel(line))
    for inner in line.inside or ():
        match inner.words:
            case ["import" | "export" as word, "all" | "none" | "where" | "filter", *_]:
                channel.policies[word] = inner
            case ["import" | "receive", "limit", *_]:
                _limit(peer, inner)
            case _ if reason := apply_rules(_CHANNEL, peer, inner):
                peer.draft.leave(inner.source, reason)
    return None


def _limit(peer: BirdPeer, line: BirdStatement) -> None:
    """Keep a limit; of several, of families and kinds, the largest."""
    match line.words[2:]:
        case ["off"]:
            return
        case [text, "action", "disable" | "restart"] if text.isdigit():
            before = peer.settings.get(("maximum-prefixes",))
            limit = max(int(text), 0 if before is None else before.value)
            peer.settings["maximum-prefixes",] = Written(limit, line)
        case _:
            peer.draft.leave(line.source, "fared ends the session: action restart")


_CHANNEL: Final = (
    Rule("extended next hop ...", _is(on=True)),
    Rule("next hop self", why(_ALWAYS)),
    Rule("next hop ...", _instead("next-hop-unchanged")),
    Rule("add paths ...", _if_on(NEIGHBOR["add-path"])),
    Rule("graceful restart ...", why("graceful-restart is of the router")),
    Rule("import table ...", _if_on(NEIGHBOR["soft-reconfiguration"])),
    Rule("import keep filtered ...", _if_on(NEIGHBOR["soft-reconfiguration"])),
    Rule("export table ...", _if_on(_ALWAYS)),
    Rule("missing lladdr ...", why(NEIGHBOR["next-hop-self"])),
    Rule("gateway direct", _is(on=True)),
    Rule("gateway recursive", why(NEIGHBOR["multihop"])),
    Rule("table ...", why("fared has one table: fib: table")),
    Rule("preference N", why("in BIRD the higher one wins, in fared the lower: 'preference'")),
    Rule("cost N", why("fared takes the capacity of links: interfaces: NAME: bandwidth")),
    Rule("export limit ...", why("fared limits what a neighbor tells: maximum-prefixes")),
)
RULES: Final = (
    Rule("local ...", _local),
    Rule("neighbor ...", _neighbor),
    Rule("interface N", _interface),
    Rule("ipv4 ...", _channel),
    Rule("ipv6 ...", _channel),
    Rule("ipv4|ipv6 X ...", why(ROUTER["evpn"])),
    Rule("description T", _set("description", read=str)),
    Rule("disabled ...", _switch("shutdown")),
    Rule("password K", _set("authentication", "key", read=str)),
    Rule("setkey ...", why("fared gives the kernel the key itself")),
    Rule("passive ...", _switch("passive")),
    Rule("ttl security ...", _switch("ttl-security")),
    Rule("source address A", _set("local-address", read=lambda text: str(ip_address(text)))),
    Rule("hold time N", _set("hold-time")),
    Rule("keepalive time N", _set("keepalive")),
    Rule("connect retry time N", _set("connect-retry")),
    Rule("startup hold time N", why("fared waits four minutes for an OPEN (RFC 4271 §8.2.2)")),
    Rule("connect delay time N", why("fared connects at once")),
    Rule("error ...", why("fared waits connect-retry after a session has ended")),
    Rule("disable after ...", _if_on("fared begins again after an error, by connect-retry")),
    Rule("graceful restart time N", _of_router("graceful-restart", "restart-time")),
    Rule("graceful restart ...", _graceful),
    Rule("long lived ...", why("fared has no long-lived graceful restart: stale-time")),
    Rule("bfd ...", _bfd),
    Rule("router id A", _of_router("router-id", read=str)),
    Rule("enforce first as ...", _switch("enforce-first-as")),
    Rule("allow local as ...", _instead("allowas-in")),
    Rule("allow as sets ...", _is(on=True)),
    Rule("allow bgp_local_pref ...", _if_on(NEIGHBOR["local-preference"])),
    Rule("allow bgp_med ...", _if_on(NEIGHBOR["med"])),
    Rule("allowas in ...", _instead("allowas-in")),
    Rule("multihop ...", _instead("multihop")),
    Rule("direct", why(_ALWAYS)),
    Rule("rr ...", _instead("route-reflector")),
    Rule("rs client ...", why("fared is no route server: its AS is in all paths that it tells")),
    Rule("confederation ...", _instead("confederation")),
    Rule("add paths ...", _if_on(NEIGHBOR["add-path"])),
    Rule("next hop self", why(_ALWAYS)),
    Rule("next hop ...", _instead("next-hop-unchanged")),
    Rule("advertise hostname ...", _is(on=True)),
    Rule("capabilities ...", _is(on=True)),
    Rule("enable route refresh ...", _is(on=True)),
    Rule("enable as4 ...", _is(on=True)),
    Rule("enable extended messages ...", _is(on=False)),
    Rule("require ...", why("a session begins with what both ends have: show neighbors")),
    Rule("advertise ipv4 ...", why(NEIGHBOR["activate"])),
    Rule("interpret communities ...", _is(on=True)),
    Rule("check link ...", _is(on=True)),
    Rule("strict bind ...", _is(on=False)),
    Rule("free bind ...", _is(on=False)),
    Rule("dynamic name ...", why(_OWN)),
    Rule("default bgp_local_pref N", why(NEIGHBOR["local-preference"])),
    Rule("default bgp_med N", why(NEIGHBOR["med"])),
    Rule("path metric ...", _is(on=True)),
    Rule("med metric ...", _is(on=False)),
    Rule("deterministic med ...", _is(on=True)),
    Rule("igp metric ...", why(_DECISION)),
    Rule("prefer older ...", _if_on(_DECISION)),
    Rule("tx size warning ...", why("about BIRD's own process")),
    Rule("debug ...", why("about BIRD's own process")),
)
