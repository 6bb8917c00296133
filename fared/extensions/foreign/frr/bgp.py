"""Statements of FRR inside ``router bgp``, and inside its address families."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address, ip_network
from typing import Any, Final

from fared.config.bgp_instead import NEIGHBOR, ROUTER
from fared.extensions.foreign.frr.context import (
    AskedSource,
    FrrBgp,
    FrrPeer,
    FrrPeerLists,
    Given,
)
from fared.extensions.foreign.frr.interface import bfd
from fared.extensions.foreign.frr.lines import FrrStatement
from fared.extensions.foreign.rules import (
    NO_SETTING,
    TAKES_BACK,
    Action,
    Rule,
    block,
    number,
    why,
)

FAMILIES: Final = ("ipv4", "ipv6")
_ALWAYS: Final = "fared does so always"
_WARNING_ONLY: Final = "fared ends the session: without that, no limit is set"


class FrrBgpFamily:
    """What the statements fill in: the router, and the family that they are for."""

    def __init__(self, bgp: FrrBgp, family: str) -> None:
        self.bgp, self.family = bgp, family

    def peer(self, name: str, line: FrrStatement) -> FrrPeer:
        """Return a neighbor, or a peer group."""
        return self.bgp.peers.setdefault(name, FrrPeer(line))

    def lists(self, name: str, line: FrrStatement) -> FrrPeerLists:
        """Return the lists of a neighbor for the family."""
        return self.peer(name, line).lists.setdefault(self.family, FrrPeerLists())


# The router


def _set(*path: str, read: Callable[[str], object] = str, value: object = None) -> Action:
    """Return an action that keeps a word, or a value, as a setting of the router."""

    def keep(at: FrrBgpFamily, line: FrrStatement, *words: str) -> None:
        at.bgp.settings[path] = Given(read(words[0]) if value is None else value, line)

    return keep


def _seconds(text: str) -> str:
    return f"{number(text)}s"


def _policy(value: object) -> Action:
    def keep(at: FrrBgpFamily, line: FrrStatement) -> None:
        at.bgp.requires_policy = Given(value, line)

    return keep


def _unicast(value: object) -> Action:
    def keep(at: FrrBgpFamily, line: FrrStatement) -> None:
        at.bgp.ipv4_active = Given(value, line)

    return keep


def _timers(at: FrrBgpFamily, line: FrrStatement, keepalive: str, hold: str) -> None:
    at.bgp.timers = {"keepalive": Given(number(keepalive), line)}
    at.bgp.timers["hold-time"] = Given(number(hold), line)


def _distance(at: FrrBgpFamily, line: FrrStatement, ext: str, internal: str, _local: str) -> None:
    at.bgp.settings["preference",] = Given(number(ext), line)
    at.bgp.settings["internal-preference",] = Given(number(internal), line)


def _no_restart(at: FrrBgpFamily, line: FrrStatement) -> None:
    at.bgp.settings["graceful-restart", "helper"] = Given(False, line)


def _bandwidth(at: FrrBgpFamily, line: FrrStatement, what: str) -> str | None:
    if what != "ignore":
        return "fared has missing: link or ecmp of path-bandwidth"
    at.bgp.settings["path-bandwidth", "receive"] = Given(False, line)
    return None


def _network(at: FrrBgpFamily, line: FrrStatement, prefix: str, *words: str) -> str | None:
    at.bgp.networks.append(Given(str(ip_network(prefix, strict=False)), line))
    return f"the network is taken, {' '.join(words)} is not" if words else None


def _redistribute(at: FrrBgpFamily, line: FrrStatement, source: str, *words: str) -> None:
    at.bgp.redistributed.append(AskedSource(source, [at.family, *words], line))


def _instead(at: FrrBgpFamily, line: FrrStatement, *words: str) -> str:
    del at
    key = next((word for word in words if word in ROUTER), words[0] if words else "")
    return block(line, ROUTER.get(key, NO_SETTING))


def _family(at: FrrBgpFamily, line: FrrStatement, family: str, *kind: str) -> str | None:
    if family not in FAMILIES or (kind and kind != ("unicast",)):
        return block(line, ROUTER["evpn"])
    at.bgp.blocks.append((family, line))
    return None


# Neighbors


def _peer(*path: str, read: Callable[[str], object] = str, value: object = None) -> Action:
    """Return an action that keeps a word, or a value, as a setting of a neighbor."""

    def keep(at: FrrBgpFamily, line: FrrStatement, name: str, *words: str) -> None:
        given = read(" ".join(words)) if value is None else value
        at.peer(name, line).settings[path] = Given(given, line)

    return keep


def _remote_as(text: str) -> object:
    return number(text) if text.isdigit() else text


def _interface(at: FrrBgpFamily, line: FrrStatement, name: str, *words: str) -> str | None:
    peer = at.peer(name, line)
    rest = [word for word in words if word != "v6only"]
    match rest:
        case ["remote-as", text]:
            peer.settings["remote-as",] = Given(_remote_as(text), line)
        case ["peer-group", group]:
            peer.group = Given(group, line)
        case []:
            pass
        case _:
            return NO_SETTING
    return None


def _group(at: FrrBgpFamily, line: FrrStatement, name: str) -> None:
    at.peer(name, line).is_group = True


def _member(at: FrrBgpFamily, line: FrrStatement, name: str, group: str) -> None:
    at.peer(name, line).group = Given(group, line)


def _peer_timers(at: FrrBgpFamily, line: FrrStatement, name: str, ka: str, hold: str) -> None:
    settings = at.peer(name, line).settings
    settings["keepalive",] = Given(number(ka), line)
    settings["hold-time",] = Given(number(hold), line)


def _source(at: FrrBgpFamily, line: FrrStatement, name: str, text: str) -> str | None:
    try:
        local = str(ip_address(text))
    except ValueError:
        return "fared sends from an address of the link, or local-address"
    at.peer(name, line).settings["local-address",] = Given(local, line)
    return None


def _hops(at: FrrBgpFamily, line: FrrStatement, name: str, hops: str) -> str | None:
    if number(hops) != 1:
        return NEIGHBOR["multihop"]
    at.peer(name, line).settings["ttl-security",] = Given(True, line)
    return None


def _bfd(at: FrrBgpFamily, line: FrrStatement, name: str, *words: str) -> str | None:
    return bfd(at.peer(name, line).settings, line, words)


def _shutdown(at: FrrBgpFamily, line: FrrStatement, name: str, *words: str) -> None:
    settings = at.peer(name, line).settings
    settings["shutdown",] = Given(True, line)
    if words[:1] == ("message",):
        settings["description",] = Given(" ".join(words[1:]), line)


def _limit(at: FrrBgpFamily, line: FrrStatement, name: str, most: str, *words: str) -> str | None:
    if "warning-only" in words:
        return _WARNING_ONLY
    settings = at.peer(name, line).settings
    before = settings.get(("maximum-prefixes",))
    limit = max(number(most), 0 if before is None else before.value)
    settings["maximum-prefixes",] = Given(limit, line)
    if "restart" in words:
        minutes = number(words[words.index("restart") + 1])
        settings["restart-after",] = Given(f"{minutes}m", line)
    return None


def _list(kind: str) -> Action:
    def keep(at: FrrBgpFamily, line: FrrStatement, name: str, text: str, way: str) -> None:
        lists = at.lists(name, line)
        getattr(lists, kind)["import" if way == "in" else "export"] = Given(text, line)

    return keep


def _activate(value: object) -> Action:
    def keep(at: FrrBgpFamily, line: FrrStatement, name: str) -> None:
        at.lists(name, line).active = Given(value, line)

    return keep


def _peer_instead(at: FrrBgpFamily, line: FrrStatement, _name: str, word: str, *_: Any) -> str:  # noqa: ANN401
    del at, line
    return NEIGHBOR.get(word.lower(), NO_SETTING)


BGP: Final = (
    Rule("bgp router-id A", _set("router-id")),
    Rule("bgp ebgp-requires-policy", _policy(value=True)),
    Rule("no bgp ebgp-requires-policy", _policy(value=False)),
    Rule("bgp default ipv4-unicast", _unicast(value=True)),
    Rule("no bgp default ipv4-unicast", _unicast(value=False)),
    Rule("bgp bestpath as-path multipath-relax ...", _set("as-path", value="relax")),
    Rule("bgp bestpath bandwidth W", _bandwidth),
    Rule("bgp graceful-restart", _set("graceful-restart", "enabled", value=True)),
    Rule(
        "bgp graceful-restart restart-time N", _set("graceful-restart", "restart-time", read=number)
    ),
    Rule(
        "bgp graceful-restart stalepath-time N",
        _set("graceful-restart", "stale-time", read=_seconds),
    ),
    Rule("bgp graceful-restart-disable", _no_restart),
    Rule("bgp graceful-shutdown", _set("graceful-shutdown", value=True)),
    Rule("bgp log-neighbor-changes", why(_ALWAYS)),
    Rule("bgp enforce-first-as", why(_ALWAYS)),
    Rule("no bgp network import-check", why(_ALWAYS)),
    Rule("bgp bestpath compare-routerid", why(_ALWAYS)),
    Rule("bgp deterministic-med", why(_ALWAYS)),
    Rule("bgp listen range P ...", why(ROUTER["listen-range"])),
    Rule("bgp ...", _instead),
    Rule("timers bgp A B", _timers),
    Rule("distance bgp A B C", _distance),
    Rule("maximum-paths ibgp N ...", why("max-paths counts for both")),
    Rule("maximum-paths N", _set("max-paths", read=number)),
    Rule("network P ...", _network),
    Rule("redistribute S ...", _redistribute),
    Rule("address-family F ...", _family),
    Rule("neighbor N peer-group", _group),
    Rule("neighbor N peer-group G", _member),
    Rule("neighbor N interface ...", _interface),
    Rule("neighbor N remote-as A", _peer("remote-as", read=_remote_as)),
    Rule("neighbor N description ...", _peer("description")),
    Rule("neighbor N password K", _peer("authentication", "key")),
    Rule("neighbor N passive", _peer("passive", value=True)),
    Rule("neighbor N port P", _peer("port", read=number)),
    Rule("neighbor N shutdown ...", _shutdown),
    Rule("neighbor N timers connect S", _peer("connect-retry", read=number)),
    Rule("neighbor N timers A B", _peer_timers),
    Rule("neighbor N update-source A", _source),
    Rule("neighbor N ttl-security hops H", _hops),
    Rule("neighbor N bfd ...", _bfd),
    Rule("neighbor N enforce-first-as", why(_ALWAYS)),
    Rule("no neighbor N enforce-first-as", _peer("enforce-first-as", value=False)),
    Rule("neighbor N maximum-prefix M ...", _limit),
    Rule("neighbor N prefix-list L in|out", _list("prefix_lists")),
    Rule("neighbor N route-map L in|out", _list("route_maps")),
    Rule("neighbor N activate", _activate(value=True)),
    Rule("no neighbor N activate", _activate(value=False)),
    Rule("neighbor N capability extended-nexthop", why(_ALWAYS)),
    Rule("neighbor N next-hop-self ...", why(_ALWAYS)),
    Rule("neighbor N send-community ...", why(_ALWAYS)),
    Rule("neighbor N X ...", _peer_instead),
    Rule("aggregate-address ...", why(ROUTER["aggregate-address"])),
    Rule("no ...", why(TAKES_BACK)),
    Rule("X ...", _instead),
)
