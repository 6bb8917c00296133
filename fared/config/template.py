"""Writes the first configuration of a router from the interfaces that its machine has.

What an interface is for can only be guessed: by its kind, its addresses, and the default route. The
file tells every guess, and interfaces that were left out stay in it as comments. It always loads.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

import yaml

from fared.config.bgp_neighbor import is_address
from fared.config.globs import is_glob
from fared.core.ids import FAMILY_IPV4, dotted, format_address, format_system_id
from fared.core.links import InterfaceAddress, Link, PresentLink
from fared.core.units import format_bandwidth

Role = Literal["leaf", "spine", "superspine"]
Proto = Literal["ospf", "isis", "bgp"]

_COLUMN: Final = 33
"""Where comments begin, as in ``config/fared.yaml``."""
_WIDTH: Final = 100
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_YAML_WORDS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_LINK_LENGTH: Final = MappingProxyType({4: 30, 6: 126})
"""Prefixes at least so long are those of a link between two routers."""
_MANAGEMENT: Final = re.compile(r"(mgmt|ma|management)\d*")
_OTHERS: Final = re.compile(r"(docker|virbr|lxcbr|lxdbr|podman|cni|br-[0-9a-f]{12}).*")
_HOSTS: Final = frozenset(("bridge", "vxlan", "macvlan", "ipvlan", "dummy"))
"""Kinds of interfaces that lead to hosts, or to addresses of this machine."""
_CABLES: Final = frozenset(("", "veth", "bond", "team", "vlan", "netdevsim"))
"""Kinds of interfaces that may lead to another router."""
_SYSTEM_ID: Final = 0x0000_0000_0001


class _Guess(NamedTuple):
    """What an interface is for: a link to a router, hosts, or nothing, and why."""

    use: Literal["link", "passive", "out"]
    why: str = ""


def template(role: Role, proto: Proto, hostname: str, present: Sequence[PresentLink]) -> str:
    """Return the text of a configuration for a router with these interfaces."""
    return "".join(f"{line}\n" for line in _lines(role, proto, hostname, present))


def links_guessed(role: Role, proto: Proto, present: Sequence[PresentLink]) -> int:
    """Return the number of interfaces that lead to other routers."""
    return sum(guess.use == "link" for _, guess in _guesses(role, proto, present))


def _lines(
    role: Role, proto: Proto, hostname: str, present: Sequence[PresentLink]
) -> Iterator[str]:
    guesses = _guesses(role, proto, present)
    router_id, whence = _router_id(present)
    name = hostname if hostname.isprintable() else ""
    yield f"# A {role} of a Clos fabric{f': {name}' if name else ''}."
    yield from _HEAD
    if router_id is None:
        yield from _NO_ROUTER_ID
    else:
        yield _commented(f"router-id: {dotted(router_id)}", whence)
    yield ""
    yield from _unknown_speeds([item for item, guess in guesses if guess.use == "link"])
    match proto:
        case "ospf":
            yield from ("ospf:", "  areas:", "    0.0.0.0:")
            yield from _interfaces(guesses, " " * 6)
        case "isis":
            yield "isis:"
            title = f"49.0001.{_system_id(router_id, present)}.00"
            yield _commented(f"  net: {title}", "area, system id")
            yield _commented("  level: level-2", "routers of all roles and PoDs are in one level")
            yield from _interfaces(guesses, "  ")
        case "bgp":
            yield "bgp:"
            yield _commented(f"  as: {_as_number(role, router_id)}", _AS_OF[role])
            yield from _neighbors(role, guesses)
    yield from _FABRIC[role, proto]
    yield from _TAIL


_HEAD: Final = (
    "#",
    "# Guessed from the interfaces that this machine has: check every line. Then",
    "#   fared -c FILE --check                      # is it valid?",
    "#   fared-cli config apply FILE --confirm 5m   # on a router that runs already",
    "# All settings with their defaults: config/fared.yaml, or man fared.yaml.",
    "",
)
_NO_ROUTER_ID: Final = (
    "# No interface has an IPv4 address. Give the loopback one, which no other router has:",
    "#   ip address add 10.255.0.1/32 dev lo",
    "# router-id: 10.255.0.1",
)
_OSPF_AREAS: Final = (
    "    # Five stages: each PoD is an area, which has its links to leaves instead of 0.0.0.0.",
    "    # 0.0.0.1:",
    "    #   interfaces:",
    '    #     "swp1[0-9]": {}',
)
_OSPF_STUB: Final = (
    "  # stub-router-on-startup: 2m   # the last resort until all routes are learnt",
    "  # stub-router-on-shutdown: 10s # and before a stop, while others reroute",
)
_ISIS_STUB: Final = (
    "  # overload-on-startup: 2m      # no transit until all routes are learnt",
    "  # overload-on-shutdown: 10s    # nor before a stop, while others reroute",
)
_REDUCTION: Final = (
    "  # flooding: {reduction: leaf}  # large fabrics: defer what other routers flood as well",
)
_ISIS_SPINE: Final = (
    "  # Five stages: each PoD is an area of level 1, and its spines leak other PoDs' prefixes:",
    "  #   level: level-1-2",
    "  #   inter-level-propagation-policies: {level2-to-level1: true}",
    *_ISIS_STUB,
)
_BGP_STOP: Final = (
    "  # graceful-shutdown-on-stop: 10s  # others reroute before a stop (RFC 8326)",
)
_PRIVATE_AS: Final = 4_200_000_000
"""The first private AS of four octets (RFC 6996)."""
_AS: Final[Mapping[str, int]] = MappingProxyType({"spine": 65000, "superspine": 64999})
_AS_OF: Final = MappingProxyType(
    {
        "leaf": "of this leaf alone: from the router id",
        "spine": "all spines of a PoD share one (RFC 7938), each PoD another",
        "superspine": "all superspines share one (RFC 7938)",
    }
)
_FABRIC: Final = MappingProxyType(
    {
        ("leaf", "bgp"): _BGP_STOP,
        ("spine", "bgp"): _BGP_STOP,
        ("superspine", "bgp"): _BGP_STOP,
        ("leaf", "ospf"): _REDUCTION,
        ("spine", "ospf"): (*_OSPF_AREAS, *_OSPF_STUB),
        ("superspine", "ospf"): _OSPF_STUB,
        ("leaf", "isis"): (
            "  # Five stages: level: level-1 on leaves, level-1-2 on spines.",
            *_REDUCTION,
        ),
        ("spine", "isis"): _ISIS_SPINE,
        ("superspine", "isis"): _ISIS_STUB,
    }
)
_TAIL: Final = (
    "",
    "adaptive:",
    "  enabled: true                  # weights by path capacity: on every router, or they mislead",
    "",
    "# Errors and flaps of links are only told; with act, sick links are avoided.",
    "# link-health:",
    "#   interfaces:",
    '#     "*": {mode: monitor}',
)


def _guesses(
    role: Role, proto: Proto, present: Sequence[PresentLink]
) -> list[tuple[PresentLink, _Guess]]:
    lends = any(item.link.loopback and _addresses(item.link, FAMILY_IPV4) for item in present)
    return [(item, _guess(item, role, proto, lends=lends)) for item in present]


def _guess(item: PresentLink, role: Role, proto: Proto, *, lends: bool) -> _Guess:
    """Guess what an interface is for; ``lends``: a loopback has an address to borrow."""
    if item.link.loopback:
        return _Guess("passive")
    if why := _no_router_port(item):
        return _Guess("out", why)
    if item.kind in _HOSTS:
        return _Guess("passive") if _addresses(item.link) else _Guess("out", "no address")
    return _guess_cable(item.link, role, proto, lends=lends)


def _no_router_port(item: PresentLink) -> str:
    """Return why an interface is left out, whatever its addresses are; else nothing."""
    name = item.link.name
    reasons = (
        (not _nameable(name), "a name that the file cannot have"),
        (item.member, "belongs to a bridge, bond or VRF"),
        (_OTHERS.fullmatch(name), "of another program?"),
        (item.default_route, "the default route leaves here: management?"),
        (_MANAGEMENT.fullmatch(name), "management?"),
        (item.kind not in _HOSTS | _CABLES, f"of kind {_printable(item.kind)}"),
    )
    return next((why for holds, why in reasons if holds), "")


def _guess_cable(link: Link, role: Role, proto: Proto, *, lends: bool) -> _Guess:
    """Guess by addresses: a subnet with room for hosts is one of hosts, below a leaf."""
    families = (FAMILY_IPV4,) if proto == "ospf" else (FAMILY_IPV4, 6)
    for family in families:
        if own := _addresses(link, family):
            narrow = own[0].prefix_length >= _LINK_LENGTH[family]
            return _Guess("link" if narrow or role != "leaf" else "passive")
    if not link.up:
        return _Guess("out", "down, without an address")
    if proto == "ospf" and not lends:
        return _Guess("out", "no IPv4 address, and the loopback has none to lend")
    return _Guess("link")


def _interfaces(guesses: list[tuple[PresentLink, _Guess]], indent: str) -> Iterator[str]:
    """Yield the section of the interfaces, which is never empty."""
    yield f"{indent}interfaces:"
    inner = f"{indent}  "
    groups = {use: [pair for pair in guesses if pair[1].use == use] for use in _TITLES}
    if not any(item.link.loopback for item, _ in groups["passive"]):
        yield f"{inner}lo: {{passive: true}}"
    for use, title in _TITLES.items():
        if not groups[use]:
            continue
        yield f"{inner}# {title}"
        for item, guess in groups[use]:
            yield _interface(item, guess, inner)


def _as_number(role: Role, router_id: int | None) -> int:
    """Return the AS of a role; that of a leaf differs from all others as its router id does."""
    return _AS.get(role) or _PRIVATE_AS + ((router_id or 1) & 0xFFFF)


def _neighbors(role: Role, guesses: list[tuple[PresentLink, _Guess]]) -> Iterator[str]:
    """Yield a neighbor for each link, by link-local addresses, and the networks that are ours."""
    told = "own" if role == "leaf" else "all"
    value = f"{{import: all, export: {told}}}"
    yield "  neighbors:"
    for use, title in (("link", _TITLES["link"].replace("{}", value)), ("out", _TITLES["out"])):
        mine = [pair for pair in guesses if pair[1].use == use]
        yield from [f"    # {title}"] if mine else []
        yield from (_interface(*pair, "    ", value) for pair in mine)
    own = [item for item, guess in guesses if guess.use == "passive"]
    yield "  networks:"
    if not any(item.link.loopback for item in own):
        yield "    - lo"
    for item in own:
        yield _commented(f"    - {_key(item.link.name)}", ", ".join(_shown_addresses(item.link)))


_TITLES: Final = MappingProxyType(
    {
        "link": 'Links to other routers. New ones need no change with a glob: "swp*": {}',
        "passive": "Loopbacks and hosts: their subnets are advertised, no router is looked for.",
        "out": "Left out. Remove the # of those that should take part.",
    }
)


def _interface(item: PresentLink, guess: _Guess, indent: str, value: str = "{}") -> str:
    link = item.link
    key = _key(link.name)
    if guess.use == "out":
        facts = [guess.why, *_shown_addresses(link)]
        return _commented(f"{indent}# {key}: {value}", ", ".join(facts))
    facts = _shown_addresses(link)
    if guess.use == "link":
        facts = facts or ["unnumbered"]
        facts.append("speed unknown" if link.capacity is None else format_bandwidth(link.capacity))
        facts += [] if link.up else ["no carrier"]
    if guess.use == "passive":
        value = "{passive: true}"
    return _commented(f"{indent}{key}: {value}", ", ".join(facts))


def _unknown_speeds(links: list[PresentLink]) -> Iterator[str]:
    """Yield a section to fill in, if weights would lack capacities."""
    unknown = [item.link.name for item in links if item.link.capacity is None]
    if not unknown:
        return
    yield "# Weights need the capacity of links. The kernel does not tell that of these: fill in."
    yield "# interfaces:"
    for name in unknown:
        yield f"#   {_key(name)}: {{bandwidth: 100G}}"
    yield ""


def _router_id(present: Sequence[PresentLink]) -> tuple[int | None, str]:
    """Return the highest IPv4 address of a loopback, else of a dummy, else of any; and whence."""
    ranks = (
        ("the address of the loopback", lambda item: item.link.loopback),
        ("the address of a dummy interface", lambda item: item.kind == "dummy"),
        ("lo has no address: better give it one, and use that", lambda _: True),
    )
    for whence, wanted in ranks:
        found = [a.address for i in present if wanted(i) for a in _addresses(i.link, FAMILY_IPV4)]
        if found:
            return max(found), whence
    return None, ""


def _system_id(router_id: int | None, present: Sequence[PresentLink]) -> str:
    """Return the router id, three digits for each byte; else a MAC address."""
    if router_id is not None:
        digits = "".join(f"{byte:03d}" for byte in router_id.to_bytes(4, "big"))
        return f"{digits[:4]}.{digits[4:8]}.{digits[8:]}"
    macs = [item.link.hardware_address for item in present if item.link.hardware_address]
    return format_system_id(min(macs, default=_SYSTEM_ID))


def _addresses(link: Link, family: int | None = None) -> list[InterfaceAddress]:
    """Return the addresses that others can reach: not 127.0.0.0/8, ::1, or link-local."""
    return [
        address
        for address in link.addresses
        if family in (None, address.family) and not _local(address)
    ]


def _local(address: InterfaceAddress) -> bool:
    if address.family == FAMILY_IPV4:
        return address.address >> 24 in (0, 127) or address.address >> 16 == 0xA9FE
    return address.address <= 1 or address.link_local


def _shown_addresses(link: Link) -> list[str]:
    return [f"{format_address(a.family, a.address)}/{a.prefix_length}" for a in _addresses(link)]


def _nameable(name: str) -> bool:
    """Whether the file can name an interface: not like a glob, an address, or with controls."""
    plain = not is_glob(name) and not is_address(name)
    return bool(name) and plain and name.isprintable() and "\ufffd" not in name


def _key(name: str) -> str:
    """Return a name as a key of YAML."""
    if _PLAIN.fullmatch(name) and name.lower() not in _YAML_WORDS:
        return name
    quoted = yaml.safe_dump(name, default_style='"', width=math.inf)
    return quoted.removesuffix("\n")


def _printable(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)


def _commented(text: str, comment: str) -> str:
    """Append a comment, in the column of comments if the text leaves it free."""
    if not comment:
        return text
    line = f"{text.ljust(_COLUMN - 2)}  # {comment}"
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."
