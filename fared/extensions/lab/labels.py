"""The labels ``fared-lab.*`` of nodes, which containerlab leaves to the lab: each declared once.

A label is a line of ``LABELS``: its name, its values, its default and its meaning. The checks of a
topology file, the properties of a node, and the table of ``containerlab/README.md`` follow from it.

``fared-lab.adaptive.KEY`` is no line of it: it is the setting KEY of that section of fared's own
configuration, which declares it and refuses it in the same words. Its value is written as there, a
list as text: ``fared-lab.adaptive.packet-prefixes: "[10.0.2.0/24]"``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any, Final, Generic, TypeVar

import yaml

from fared.core.units import BytesPerSecond, parse_bandwidth, parse_duration

T = TypeVar("T")
PREFIX: Final = "fared-lab."
SECTIONS: Final = ("adaptive",)
"""Sections of fared's configuration whose settings are labels."""
ROUTER_KINDS: Final = ("fared", "frr", "bird")
HOST_KIND: Final = "linux"
SEGMENT_KIND: Final = "bridge"
OSPF, ISIS, BGP = PROTOCOLS = ("ospf", "isis", "bgp")
ON, OFF, PHP = "on", "off", "php"
IPV4, DUAL, UNNUMBERED = SESSIONS = ("ipv4", "dual", "unnumbered")
SINGLE, OFFLOAD = "single", "offload"
LEVELS: Final = ("level-1", "level-2", "level-1-2")
_NONE: Final = "none"
_AUTO: Final = "auto"
_UNSHAPED: Final = (_NONE, "off")
_LONGEST_DELAY: Final = 1.0
_ISIS_AREA: Final = re.compile(r"[0-9a-fA-F]{2}(?:\.?[0-9a-fA-F]{2}){0,12}")
_SECONDS: Final = re.compile(r"[1-9][0-9]{0,3}")


@dataclass(frozen=True)
class Label(Generic[T]):
    """A label. ``values`` and ``meaning`` are for people; ``default`` is written as a value.

    ``read`` returns the value of a text, or raises ValueError with what is wrong.
    """

    name: str
    values: str
    default: str
    meaning: str
    read: Callable[[str], T]

    @property
    def key(self) -> str:
        """The label as written."""
        return f"{PREFIX}{self.name}"

    def of(self, labels: Mapping[str, str]) -> T:
        """Return the value at a node with these labels. Raises ValueError."""
        return self.read(labels.get(self.key, self.default))


def read_rate(text: str) -> BytesPerSecond | None:
    """Return the rate of a link, None if it is not shaped. Raises ValueError."""
    return None if text.lower() in _UNSHAPED else parse_bandwidth(text)


def read_delay(text: str) -> float:
    """Return the delay of a link in one direction, seconds. Raises ValueError."""
    delay = parse_duration(text)
    if delay > _LONGEST_DELAY:
        raise ValueError(f"{text!r} is more than {_LONGEST_DELAY:g}s")
    return delay


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the question whether the nearest known word is meant; empty: none is near."""
    near = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _one_of(name: str, words: tuple[str, ...], default: str, meaning: str) -> Label[str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is none of {', '.join(words)}{nearest(text, words)}")
        return text

    return Label(name, ", ".join(f"`{word}`" for word in words), default, meaning, read)


def _seconds(text: str) -> int:
    if not _SECONDS.fullmatch(text):
        raise ValueError(f"{text!r} is not 1 to 9999 seconds")
    return int(text)


def _isis_area(text: str) -> str:
    if not _ISIS_AREA.fullmatch(text):
        raise ValueError(f"{text!r} is not an area address such as 49.0001")
    return text


def _tree(text: str) -> str | None:
    return None if text == _NONE else text


def _loopback(text: str) -> IPv4Address | None:
    return None if text == _AUTO else IPv4Address(text)


KIND = _one_of(
    "kind",
    (*ROUTER_KINDS, HOST_KIND),
    HOST_KIND,
    "the program in a node of containerlab's kind `linux`; `linux`: a host",
)
RATE = Label(
    "rate",
    "bit/s such as `100M`, `none`",
    "none",
    "rate of a router's links to other routers",
    read_rate,
)
PROTOCOL = _one_of("protocol", PROTOCOLS, OSPF, "of a router; IS-IS routes IPv6 too")
BGP_SESSIONS = _one_of(
    "bgp-sessions",
    SESSIONS,
    IPV4,
    "of a BGP router: with IPv4 addresses, for IPv4; with addresses of both families, each for its"
    " own; between link-local addresses, for both (RFC 8950)",
)
HELLO = Label(
    "hello-interval",
    "seconds",
    "1",
    "four without a hello end an adjacency; BGP's keepalives are three times as far apart",
    _seconds,
)
LEVEL = _one_of("isis-level", LEVELS, "level-2", "levels of an IS-IS router")
AREA = Label("isis-area", "area address", "49.0000", "area of an IS-IS router", _isis_area)
LOOPBACK = Label(
    "loopback",
    "IPv4 address, `auto`",
    _AUTO,
    "router id of a router, and address of its loopback",
    _loopback,
)
SEGMENTATION = _one_of(
    "segmentation",
    (SINGLE, OFFLOAD),
    OFFLOAD,
    "of a host: TCP segments leave one by one, or up to 64 KB of a flow as one packet",
)
BIER = _one_of(
    "bier",
    (ON, PHP, OFF),
    OFF,
    "a router is a BFR, and its hosts are BFERs; `php`: hosts get payloads without header",
)
INA = _one_of(
    "ina",
    (ON, OFF),
    OFF,
    "`fared-ina` runs in a router, which sums; the demo's workers are in hosts with it, or in all",
)
TREE = Label(
    "tree",
    "routers such as `s1,s7,s6`, `none`",
    "none",
    "of a router: the demo of aggregation shows this tree beside the planned one",
    _tree,
)
LABELS: Final[tuple[Label[Any], ...]] = (
    KIND,
    RATE,
    PROTOCOL,
    BGP_SESSIONS,
    HELLO,
    LEVEL,
    AREA,
    LOOPBACK,
    SEGMENTATION,
    BIER,
    INA,
    TREE,
)


def faults(labels: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with the labels of a node, those of other programs aside."""
    known = {label.key: label for label in LABELS}
    prefixes = tuple(f"{PREFIX}{section}." for section in SECTIONS)
    for key, text in labels.items():
        if not key.startswith(PREFIX) or key.startswith(prefixes):
            continue
        if key not in known:
            yield f"label {key}: the lab knows none of that name{nearest(key, known)}"
            continue
        try:
            known[key].read(text)
        except ValueError as error:
            yield f"label {key}: {error}"
    document = settings(labels)
    if document:
        yield from (f"label {PREFIX}{fault}" for fault in _refused(document))


def settings(labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the sections of fared's configuration that labels set, as in its file."""
    document: dict[str, Any] = {}
    for key, text in labels.items():
        *sections, setting = key.removeprefix(PREFIX).split(".")
        if not key.startswith(PREFIX) or not sections or sections[0] not in SECTIONS:
            continue
        inner = document
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[setting] = _value(text)
    return document


def _value(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _refused(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the errors that fared finds in a part of its configuration file."""
    # 0.3 s that files without such labels need not pay
    from fared.config.errors import ConfigErrors  # noqa: PLC0415
    from fared.config.load import load_text  # noqa: PLC0415

    try:
        load_text(yaml.safe_dump(dict(document)))
    except ConfigErrors as refused:
        yield from (error.text for error in refused.errors)
