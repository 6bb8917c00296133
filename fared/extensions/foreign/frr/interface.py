"""Statements of FRR inside ``interface``, of zebra, ospfd and isisd."""

from __future__ import annotations

from ipaddress import ip_interface
from typing import Final

from fared.extensions.foreign.frr.context import FrrPort, Given, Key, Settings, setting, switch
from fared.extensions.foreign.frr.lines import FrrStatement
from fared.extensions.foreign.rules import Action, Rule, number, why

_TYPES: Final = {"point-to-point": "point-to-point", "broadcast": "broadcast"}
_LEVELS: Final = {"level-1": "level-1", "level-2-only": "level-2", "level-1-2": "level-1-2"}
_ONE_ADDRESS: Final = "fared has settings of interfaces, not of one address of them"
_NO_LABELS: Final = "fared has no MPLS and no segment routing"
_LINK: Final = "fared advertises it from what the kernel tells and measures"


def _address(port: FrrPort, line: FrrStatement, text: str, *_rest: str) -> None:
    port.addresses.append((ip_interface(text), line))


def _describe(port: FrrPort, _line: FrrStatement, *words: str) -> None:
    port.description = " ".join(words)


def _bandwidth(port: FrrPort, line: FrrStatement, text: str) -> None:
    """Mbit/s."""
    port.bandwidth = Given(number(text) * 1e6, line)


def _link_params(port: FrrPort, line: FrrStatement) -> str | None:
    """Bandwidths are bytes/s, the delay microseconds."""
    rest = []
    for inner in line.inside:
        match inner.words:
            case ["max-bw", text]:
                port.rate = Given(float(text) * 8, inner)
            case ["delay", text, *_]:
                port.delay = Given(f"{number(text)}us", inner)
            case ["enable" | "no", *_]:
                pass
            case words:
                rest.append(words[0])
    return f"{', '.join(dict.fromkeys(rest))} of it: {_LINK}" if rest else None


# OSPF


def _ospf(action: Action) -> Action:
    return lambda port, line, *words: action(port.ospf, line, *words)


def _area(port: FrrPort, line: FrrStatement, text: str) -> None:
    port.ospf.area = Given(text, line)


def _network_type(port: FrrPort, line: FrrStatement, text: str, *rest: str) -> str | None:
    if text not in _TYPES:
        return f"fared has no network type {text}: point-to-point or broadcast"
    port.ospf.settings["network-type",] = Given(_TYPES[text], line)
    return f"{' '.join(rest)} is ignored, the type is taken" if rest else None


def _ospf_passive(port: FrrPort, line: FrrStatement, *_rest: str) -> None:
    port.ospf.passive = Given(line.words[0] != "no", line)


def _ospf_bfd(port: FrrPort, line: FrrStatement, *words: str) -> str | None:
    return bfd(port.ospf.settings, line, words)


def bfd(settings: Settings, line: FrrStatement, words: tuple[str, ...]) -> str | None:
    """``bfd``, ``bfd profile NAME``, and of older releases multiplier and intervals in ms."""
    settings["bfd", "enabled"] = Given(True, line)
    match words:
        case ():
            return None
        case ("profile", name):
            settings["bfd", "profile"] = Given(name, line)
        case (multiplier, receive, transmit) if multiplier.isdigit():
            settings["bfd", "multiplier"] = Given(number(multiplier), line)
            settings["bfd", "min-rx"] = Given(f"{number(receive)}ms", line)
            settings["bfd", "min-tx"] = Given(f"{number(transmit)}ms", line)
        case _:
            return f"BFD is taken, {' '.join(words)} is not"
    return None


def _mode(port: FrrPort, line: FrrStatement, *words: str) -> str | None:
    match words:
        case () | ("message-digest",) | ("null",) | ("key-chain", _):
            port.ospf.mode = Given(words, line)
            return None
    return _ONE_ADDRESS


def _password(port: FrrPort, line: FrrStatement, text: str) -> None:
    port.ospf.password = Key({"algorithm": "cleartext", "key": text}, line)


def _digest(port: FrrPort, line: FrrStatement, identity: str, text: str) -> None:
    leaves = {"algorithm": "md5", "key-id": number(identity), "key": text}
    port.ospf.digests.append(Key(leaves, line))


# IS-IS


def _isis(action: Action) -> Action:
    return lambda port, line, *words: action(port.isis, line, *words)


def _family(port: FrrPort, line: FrrStatement, version: str, tag: str) -> None:
    port.isis.families["ipv4" if version == "ip" else "ipv6"] = Given(tag, line)


def _circuit(port: FrrPort, line: FrrStatement, text: str) -> None:
    if text not in _LEVELS:
        raise ValueError("expected level-1, level-2-only or level-1-2")
    port.isis.settings["level",] = Given(_LEVELS[text], line)


def _of_level(name: str) -> Action:
    """Return the action of a number that FRR has for each level, and fared for both."""

    def keep(port: FrrPort, line: FrrStatement, *words: str) -> str | None:
        before = port.isis.settings.get((name,))
        value = number(words[-1])
        port.isis.settings[name,] = Given(value, line)
        if before is not None and before.value != value:
            return f"fared has one {name} for both levels: {value} is taken"
        return None

    return keep


def _isis_password(port: FrrPort, line: FrrStatement, form: str, text: str) -> None:
    port.isis.keys = [isis_key(form, text, line)]


def isis_key(form: str, text: str, line: FrrStatement) -> Key:
    """Return a key of IS-IS: a password, or HMAC-MD5."""
    algorithm = {"clear": "cleartext", "md5": "hmac-md5"}[form]
    return Key({"algorithm": algorithm, "key": text}, line)


def _isis_bfd(port: FrrPort, line: FrrStatement, *words: str) -> str | None:
    return bfd(port.isis.settings, line, words)


def _both(name: str, action: Action) -> tuple[Rule, ...]:
    """Return the rules of a number of a level, or of both."""
    return tuple(Rule(f"isis {name}{of} N", action) for of in ("", " level-1", " level-2"))


RULES: Final = (
    Rule("ip|ipv6 address A ...", lambda port, line, _ip, text, *_: _address(port, line, text)),
    Rule("description ...", _describe),
    Rule("bandwidth N", _bandwidth),
    Rule("link-params", _link_params),
    Rule("shutdown", why("fared sets no link up or down: 'ip link set NAME down'")),
    Rule("ip ospf area A", _area),
    Rule("ip ospf N area A", lambda port, line, _instance, text: _area(port, line, text)),
    Rule("ip ospf cost N", _ospf(setting("cost", read=number))),
    Rule("ip ospf hello-interval N", _ospf(setting("hello-interval", read=number))),
    Rule("ip ospf dead-interval N", _ospf(setting("dead-interval", read=number))),
    Rule("ip ospf dead-interval minimal ...", why("hellos below a second: use BFD")),
    Rule("ip ospf retransmit-interval N", _ospf(setting("retransmit-interval", read=number))),
    Rule("ip ospf transmit-delay N", why("fared adds a second for each link, as RFC 2328 asks")),
    Rule("ip ospf priority N", _ospf(setting("priority", read=number))),
    Rule("ip ospf network T ...", _network_type),
    Rule("ip ospf mtu-ignore", _ospf(switch("mtu-ignore"))),
    Rule("ip ospf passive", _ospf_passive),
    Rule("no ip ospf passive", _ospf_passive),
    Rule("ip ospf prefix-suppression", _ospf(switch("prefix-suppression"))),
    Rule("ip ospf bfd ...", _ospf_bfd),
    Rule("ip ospf authentication ...", _mode),
    Rule("ip ospf authentication-key K", _password),
    Rule("ip ospf message-digest-key N md5 K", _digest),
    Rule("ip ospf cost|hello-interval|dead-interval|priority N A", why(_ONE_ADDRESS)),
    Rule("ip ospf authentication-key|mtu-ignore|area ...", why(_ONE_ADDRESS)),
    Rule("ip|ipv6 router isis T", _family),
    Rule("isis circuit-type T", _circuit),
    *_both("metric", _of_level("metric")),
    *_both("priority", _of_level("priority")),
    *_both("hello-interval", _of_level("hello-interval")),
    *_both("hello-multiplier", _of_level("hello-multiplier")),
    *_both("csnp-interval", _of_level("csnp-interval")),
    *_both("psnp-interval", why("fared acknowledges at once, or with a few others")),
    Rule("isis hello padding ...", _isis(switch("hello-padding"))),
    Rule("no isis hello padding", _isis(switch("hello-padding", value=False))),
    Rule("isis network point-to-point", _isis(switch("network-type", value="point-to-point"))),
    Rule("isis passive", _isis(switch("passive"))),
    Rule("isis password clear|md5 K", _isis_password),
    Rule("isis bfd ...", _isis_bfd),
    Rule("isis three-way-handshake", why("fared does so always")),
    Rule("mpls ...", why(_NO_LABELS)),
)
