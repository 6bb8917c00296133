"""Statements of FRR inside ``router ospf`` and ``router isis``."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network
from typing import Any, Final

from fared.core.ids import dotted, parse_area
from fared.extensions.foreign.frr.context import (
    AskedSource,
    FrrIsis,
    FrrOspf,
    Given,
    NetworkArea,
    setting,
    switch,
)
from fared.extensions.foreign.frr.interface import isis_key
from fared.extensions.foreign.frr.lines import FrrStatement
from fared.extensions.foreign.rules import Action, Rule, number, why

_ALWAYS: Final = "fared does so always"
_LINK_ID: Final = "fared advertises the router id"
_NO_SR: Final = "fared has no MPLS and no segment routing"
_NO_NSSA: Final = "fared has no NSSA: make it a stub on all of its routers, or leave it to FRR"
_LEVELS: Final = {"level-1": "level-1", "level-2-only": "level-2", "level-1-2": "level-1-2"}


def area_id(text: str) -> str:
    """Return an area as in the file of fared. Raises ValueError."""
    return dotted(parse_area(text))


# OSPF


def _network(ospf: FrrOspf, line: FrrStatement, prefix: str, area: str) -> None:
    found = ip_network(prefix, strict=False)
    if not isinstance(found, IPv4Network):
        raise ValueError("expected an IPv4 prefix")  # noqa: TRY004 - a value of the file
    ospf.networks.append(NetworkArea(found, area_id(area), line))


def _area(*path: str, value: object = None, read: Any = str) -> Action:  # noqa: ANN401
    """Return an action that keeps a setting of an area."""

    def keep(ospf: FrrOspf, line: FrrStatement, area: str, *words: str) -> None:
        for_area = ("areas", area_id(area), *path)
        ospf.settings[for_area] = Given(read(words[0]) if value is None else value, line)

    return keep


def _stub(ospf: FrrOspf, line: FrrStatement, area: str, *words: str) -> str | None:
    ospf.settings["areas", area_id(area), "type"] = Given("stub", line)
    match words:
        case ():
            return None
        case ("no-summary",):
            ospf.settings["areas", area_id(area), "summary"] = Given(False, line)
            return None
    return f"the stub is taken, {' '.join(words)} is not"


def _area_mode(ospf: FrrOspf, line: FrrStatement, area: str, *words: str) -> None:
    ospf.area_modes[area_id(area)] = Given(words, line)


def _area_filter(ospf: FrrOspf, line: FrrStatement, area: str, name: str, way: str) -> None:
    ospf.area_filters[area_id(area), way] = Given(name, line)


def _range(ospf: FrrOspf, line: FrrStatement, area: str, prefix: str, *words: str) -> str | None:
    at = ("areas", area_id(area), "ranges", str(ip_network(prefix)))
    rest = list(words)
    options: dict[str, object] = {}
    while rest:
        match rest:
            case ["advertise", *more]:
                rest = more
            case ["not-advertise", *more]:
                options["advertise"], rest = False, more
            case ["cost", text, *more]:
                options["cost"], rest = number(text), more
            case _:
                return f"{rest[0]} of a range: fared has cost and advertise only"
    ospf.settings[at] = Given(options, line)
    return None


def _passive(ospf: FrrOspf, line: FrrStatement, name: str, *_address: str) -> None:
    given = Given(line.words[0] != "no", line)
    if name == "default":
        ospf.passive_default = given
    else:
        ospf.passive[name] = given


def _redistribute(router: FrrOspf | FrrIsis, line: FrrStatement, source: str, *words: str) -> None:
    router.redistributed.append(AskedSource(source, list(words), line))


def _distribute(ospf: FrrOspf, line: FrrStatement, name: str, source: str) -> None:
    ospf.distribute_lists.append(AskedSource(source, [name], line))


def _default_metric(ospf: FrrOspf, _line: FrrStatement, text: str) -> None:
    ospf.default_metric = number(text)


def _reference(ospf: FrrOspf, _line: FrrStatement, text: str) -> None:
    ospf.reference = number(text) * 1e6


def _throttle(ospf: FrrOspf, line: FrrStatement, first: str, hold: str, most: str) -> None:
    """Delay of the first run, and the least and most between runs, in ms (RFC 8405)."""
    initial, short = number(first), max(number(first), number(hold))
    delays = {"initial-delay": initial, "short-delay": short}
    delays["long-delay"] = max(short, number(most))
    for name, value in delays.items():
        ospf.settings["spf", name] = Given(f"{value}ms", line)


def _max_metric(ospf: FrrOspf, line: FrrStatement, when: str, *words: str) -> None:
    name = {"administrative": "stub-router"}.get(when, f"stub-router-{when}")
    value: object = True if when == "administrative" else f"{number(words[0])}s"
    ospf.settings[name,] = Given(value, line)


def _graceful(ospf: FrrOspf, line: FrrStatement, *words: str) -> str | None:
    settings = ospf.settings
    match words:
        case ():
            settings["graceful-restart", "enabled"] = Given(True, line)
        case ("grace-period", seconds):
            settings["graceful-restart", "enabled"] = Given(True, line)
            settings["graceful-restart", "grace-period"] = Given(number(seconds), line)
        case ("helper", "enable"):
            settings["graceful-restart", "helper"] = Given(True, line)
        case ("helper", "planned-only"):
            settings["graceful-restart", "planned-only"] = Given(True, line)
        case ("helper", "supported-grace-time", seconds):
            time = Given(number(seconds), line)
            settings["graceful-restart", "supported-grace-time"] = time
        case ("helper", "strict-lsa-checking"):
            settings["graceful-restart", "strict-lsa-checking"] = Given(True, line)
        case _:
            return "fared helps all neighbors, or none"
    return None


_TE: Final = (
    Rule("mpls-te on", why(_ALWAYS)),
    Rule("mpls-te export", why(_ALWAYS)),
    Rule("mpls-te router-address A", why(_LINK_ID)),
    Rule("segment-routing ...", why(_NO_SR)),
)
"""The same in both protocols."""
OSPF: Final = (
    Rule("ospf router-id A", setting("router-id")),
    Rule("router-id A", setting("router-id")),
    Rule("network P area A", _network),
    Rule("area A stub ...", _stub),
    Rule("area A nssa ...", why(_NO_NSSA)),
    Rule("area A range P ...", _range),
    Rule("area A default-cost N", _area("default-cost", read=number)),
    Rule("area A authentication ...", _area_mode),
    Rule("area A filter-list prefix L in|out", _area_filter),
    Rule("area A virtual-link ...", why("fared has no virtual links")),
    Rule("area A X ...", why("fared filters between areas by ranges and filter-list")),
    Rule("passive-interface I ...", _passive),
    Rule("no passive-interface I ...", _passive),
    Rule("redistribute S ...", _redistribute),
    Rule(
        "default-information originate ...",
        lambda ospf, line, *words: _redistribute(ospf, line, "default", *words),
    ),
    Rule("default-metric N", _default_metric),
    Rule("auto-cost reference-bandwidth N", _reference),
    Rule("distance N", setting("preference", read=number)),
    Rule("maximum-paths N", setting("max-paths", read=number)),
    Rule("timers throttle spf A B C", _throttle),
    Rule("timers throttle lsa all N", why("fared paces LSAs by RFC 2328")),
    Rule("timers lsa min-arrival N", why("fared paces LSAs by RFC 2328")),
    Rule("max-metric router-lsa administrative|on-startup|on-shutdown ...", _max_metric),
    Rule("graceful-restart ...", _graceful),
    Rule("log-adjacency-changes ...", why(_ALWAYS)),
    Rule("capability opaque", why(_ALWAYS)),
    Rule("ospf opaque-lsa", why(_ALWAYS)),
    Rule("ospf abr-type T", why("fared's border routers are those of RFC 3509, as FRR's default")),
    *_TE,
    Rule("router-info ...", why(_ALWAYS)),
    Rule("neighbor A ...", why("fared has no NBMA networks")),
    Rule("distribute-list L out S", _distribute),
)


# IS-IS


def _net(isis: FrrIsis, line: FrrStatement, text: str) -> None:
    isis.nets.append(Given(text, line))


def _level(isis: FrrIsis, line: FrrStatement, text: str) -> None:
    if text not in _LEVELS:
        raise ValueError("expected level-1, level-2-only or level-1-2")
    isis.level = _LEVELS[text]
    isis.settings["level",] = Given(isis.level, line)


def _of_levels(*path: str) -> Action:
    """Return an action for a number that FRR has for each level too."""

    def keep(isis: FrrIsis, line: FrrStatement, *words: str) -> str | None:
        before = isis.settings.get(path)
        value = number(words[-1])
        isis.settings[path] = Given(value, line)
        differs = before is not None and before.value != value
        return f"fared has one for both levels: {value} is taken" if differs else None

    return keep


def _level_password(level: int) -> Action:
    def keep(isis: FrrIsis, line: FrrStatement, form: str, text: str, *words: str) -> str | None:
        isis.level_keys[level] = isis_key(form, text, line)
        if list(words) == ["authenticate", "snp", "validate"]:
            return None
        return "the key is taken, and fared signs and requires it in SNPs too"

    return keep


def _overload(isis: FrrIsis, line: FrrStatement, *words: str) -> None:
    match words:
        case ("on-startup", seconds):
            isis.settings["overload-on-startup",] = Given(f"{number(seconds)}s", line)
        case _:
            isis.settings["overload",] = Given(True, line)


def _delays(isis: FrrIsis, line: FrrStatement, *words: str) -> None:
    given = dict(zip(words[::2], words[1::2], strict=True))
    names = {"init-delay": "initial-delay"}
    for name, value in given.items():
        isis.settings["spf", names.get(name, name)] = Given(f"{number(value)}ms", line)


def _isis_redistribute(isis: FrrIsis, line: FrrStatement, family: str, *words: str) -> None:
    _redistribute(isis, line, words[0], family, *words[1:])


def _isis_default(isis: FrrIsis, line: FrrStatement, family: str, *words: str) -> None:
    _redistribute(isis, line, "default", family, *words)


def _metric_style(_isis: FrrIsis, _line: FrrStatement, style: str) -> str | None:
    return None if style == "wide" else f"fared has wide metrics only: {style} is no neighbor"


ISIS: Final = (
    Rule("net N", _net),
    Rule("is-type T", _level),
    Rule("metric-style S", _metric_style),
    Rule("lsp-mtu N", setting("lsp-mtu", read=number)),
    *(
        Rule(f"{name}{of} N", action)
        for name, action in (
            ("max-lsp-lifetime", _of_levels("lsp-lifetime")),
            ("lsp-refresh-interval", _of_levels("lsp-refresh")),
            ("lsp-gen-interval", why("fared throttles each LSP by how often it changes")),
            ("spf-interval", why("'spf' of fared is RFC 8405: spf-delay-ietf")),
        )
        for of in ("", " level-1", " level-2")
    ),
    Rule("spf-delay-ietf ...", _delays),
    Rule("set-overload-bit ...", _overload),
    Rule("set-attached-bit", switch("attached")),
    Rule("attached-bit send", switch("attached")),
    Rule("no set-attached-bit", switch("attached", value=False)),
    Rule("no attached-bit send", switch("attached", value=False)),
    Rule("attached-bit receive ignore", why("fared follows it, as RFC 1195 asks")),
    Rule("area-password clear|md5 K ...", _level_password(1)),
    Rule("domain-password clear|md5 K ...", _level_password(2)),
    Rule("topology ipv6-unicast ...", switch("multi-topology")),
    Rule("topology ...", why("fared has the topologies of IPv4 and of IPv6 only")),
    Rule("advertise-passive-only", switch("advertise-passive-only")),
    Rule("redistribute ipv4|ipv6 ...", _isis_redistribute),
    Rule("default-information originate ipv4|ipv6 ...", _isis_default),
    Rule("hostname dynamic", why(_ALWAYS)),
    Rule("dynamic-hostname", why(_ALWAYS)),
    Rule("log-adjacency-changes", why(_ALWAYS)),
    *_TE,
    Rule("fast-reroute ...", why("fared has no precomputed backups: it moves flows with groups")),
)
