"""The text of a generated topology file, which ``topology`` reads and containerlab too."""

from __future__ import annotations

import dataclasses
import re
import shlex
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from fared.core.ids import BACKBONE
from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.generate.model import HOST, Generator, LinkEntry, NodeEntry
from fared.extensions.lab.labels import (
    AREA,
    BGP,
    BGP_SESSIONS,
    DUAL,
    HELLO,
    IPV4,
    ISIS,
    KIND,
    LEVEL,
    OSPF,
    PROTOCOL,
    RATE,
    UNNUMBERED,
)
from fared.extensions.lab.node import container_sysctls
from fared.extensions.lab.topology import from_document

_KINDS = """\
name: {name}

topology:
  defaults: {{labels: {labels}}}   # hello: seconds
  kinds:
    linux:
      image: fared
      binds: ["{file}:/fabric.clab.yml:ro"]
      cmd: fared-lab node /fabric.clab.yml
      network-mode: none     # no second path around the fabric
      restart-policy: "no"   # Docker would restart a node without its links
"""
_UNPRIVILEGED = """\
      privileged: false
      cap-add: [NET_ADMIN, NET_RAW]
"""
_OVER = {OSPF: "", ISIS: " over IS-IS, IPv4 and IPv6", BGP: " over BGP"}
_SESSIONS = {
    IPV4: "",
    DUAL: ", IPv4 and IPv6",
    UNNUMBERED: ", IPv4 and IPv6, without addresses on links between routers",
}
_SYSTEMS = "Each router with hosts is an AS, routers above one router share an AS (RFC 7938 §5.2). "
_WIDTH = 100
_LONGEST_INTERFACE = 15
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*|[0-9]+[A-Za-z]*")
_KEYWORDS = {"on", "off", "yes", "no", "true", "false", "null", "y", "n"}


def text(generator: Generator) -> str:
    """Return the topology file. Raises LabError if the parameters make no fabric."""
    nodes, links = list(generator.all_nodes()), list(generator.all_links())
    labels = {HELLO.key: str(generator.hello)}
    if generator.sessions != IPV4:
        if not generator.bgp:
            raise LabError(f"sessions are of BGP, and the protocol is {generator.protocol}")
        labels = {BGP_SESSIONS.key: generator.sessions, **labels}
    if generator.protocol != OSPF:
        labels = {PROTOCOL.key: generator.protocol, **labels}
    kinds = _KINDS.format(name=generator.lab, file=generator.file, labels=_flow(labels))
    links_text = ["", "  links:", *_links(generator, links)]

    def body(sysctls: _Sysctls) -> list[str]:
        return [
            *kinds.splitlines(),
            *_groups_and_nodes(generator, nodes, links, sysctls),
            *links_text,
        ]

    text = body(_Sysctls())
    plan = make_plan(from_document(yaml.safe_load("\n".join(text)), Path(generator.file)))
    if generator.privileged == "no":
        kinds += _UNPRIVILEGED
        text = body(_sysctls(plan, nodes))
    return "".join(f"{line}\n" for line in (*_head(generator, plan), *text))


@dataclass(frozen=True)
class _Sysctls:
    """The sysctls that containers begin with: of all nodes of a group, and of one node."""

    of_group: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    of_node: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def _sysctls(plan: AddressPlan, nodes: Iterable[NodeEntry]) -> _Sysctls:
    """Return what nodes need where they may set nothing themselves."""
    of_node = {node.name: container_sysctls(plan.node(node.name)) for node in nodes}
    of_group: dict[str, dict[str, str]] = {}
    for node in nodes:
        own = of_node[node.name]
        shared = of_group.setdefault(node.group, own)
        of_group[node.group] = dict(shared.items() & own.items())
    return _Sysctls(
        {group: dict(sorted(shared.items())) for group, shared in of_group.items()},
        {
            node.name: dict(of_node[node.name].items() - of_group[node.group].items())
            for node in nodes
        },
    )


# -- the head --------------------------------------------------------------------------------------


def _head(generator: Generator, plan: AddressPlan) -> Iterator[str]:
    over = _OVER[generator.protocol] + _SESSIONS[generator.sessions]
    told = f"{generator.title()}{over}: {generator.size()}; "
    systems = _SYSTEMS if generator.bgp else ""
    yield from _comment(f"{told}{generator.links()}. {systems}{generator.remarks()}")
    yield "#"
    yield from _uses(generator.file, plan)
    yield "#"
    yield from _comment(
        f"`{_typed(generator)}` writes this file. Interfaces are named after the node at the far "
        "end. Only fared-lab reads the labels fared-lab.* and the vars of links, which "
        "fared/extensions/lab/topology.py explains. In a container, `fared-lab node` reads this "
        "file too: it finds its node by host name and sets the node's addresses and configuration."
    )


def _uses(file: str, plan: AddressPlan) -> Iterator[str]:
    """What can be done with the file, as a table."""
    uses = [
        (f"fared-lab up {file}", "the fabric, left running"),
        ("fared-lab traffic all-reduce-ring --size 4M", "a collective over its hosts"),
        (f"containerlab deploy -t {file}", "with Docker; see containerlab/README.md"),
    ]
    if len(plan.equal_cost_ports(*plan.farthest_leaves())) > 1:
        uses.insert(0, (f"fared-lab demo {file}", "the demo, in namespaces, no root needed"))
    width = max(len(command) for command, _ in uses)
    yield from (f"#   {command:<{width}}   {what}" for command, what in uses)


def _typed(generator: Generator) -> str:
    """The command that writes the file."""
    own = [
        (field.name, getattr(generator, field.name))
        for field in dataclasses.fields(generator)
        if getattr(generator, field.name) != field.default
    ]
    words = [word for name, value in own for word in (f"--{name.replace('_', '-')}", str(value))]
    return shlex.join(["fared-lab", "generate", generator.command(), *words])


def _comment(words: str) -> list[str]:
    return textwrap.wrap(
        words.strip(),
        _WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


# -- nodes -----------------------------------------------------------------------------------------


def _groups_and_nodes(
    generator: Generator,
    nodes: Sequence[NodeEntry],
    links: Iterable[LinkEntry],
    sysctls: _Sysctls,
) -> Iterator[str]:
    levels = _levels(links) if generator.isis else {}
    of_group: dict[str, set[str | None]] = defaultdict(set)
    for node in nodes:
        of_group[node.group].add(levels.get(node.name))
    yield "  groups:"
    for group, found in of_group.items():
        shared = sysctls.of_group.get(group)
        if not shared:
            yield f"    {group}: {_flow_of_group(generator, group, found)}"
            continue
        yield f"    {group}:"
        yield from (f"      {line}" for line in _lines_of_group(generator, group, found))
        yield "      sysctls:"
        yield from (f"        {key}: {value}" for key, value in shared.items())
    yield ""
    yield "  nodes:"
    for node in nodes:
        labels = {}
        if generator.isis and node.area:
            labels[AREA.key] = f"49.{node.area:04d}"
        if len(of_group[node.group]) > 1 and node.name in levels:
            labels[LEVEL.key] = levels[node.name]
        labels.update(node.labels)
        more = f", labels: {_flow(labels)}" if labels else ""
        if own := sysctls.of_node.get(node.name):
            more += f", sysctls: {_flow(own)}"
        yield f"    {node.name}: {{group: {node.group}{more}}}"


def _flow_of_group(generator: Generator, group: str, levels: set[str | None]) -> str:
    return f"{{{', '.join(_lines_of_group(generator, group, levels))}}}"


def _lines_of_group(generator: Generator, group: str, levels: set[str | None]) -> Iterator[str]:
    labels: dict[str, str] = {}
    if group != HOST:
        labels = {KIND.key: "fared", RATE.key: generator.rate}
    if len(levels) == 1 and (level := next(iter(levels))) is not None:
        labels[LEVEL.key] = level
    labels.update(generator.labels(group))
    yield "kind: linux"
    if labels:
        yield f"labels: {_flow(labels)}"


def _levels(links: Iterable[LinkEntry]) -> dict[str, str]:
    """Return the level of each router of links with areas."""
    areas: dict[str, set[bool]] = defaultdict(set)
    for link in links:
        if link.area is not None:
            for name in (link.upper, link.lower):
                areas[name].add(link.area == BACKBONE)
    names = {True: "level-2", False: "level-1"}
    return {
        name: names[next(iter(found))] if len(found) == 1 else "level-1-2"
        for name, found in areas.items()
    }


# -- links -----------------------------------------------------------------------------------------


def _links(generator: Generator, links: Iterable[LinkEntry]) -> Iterator[str]:
    part = ""
    used: Counter[tuple[str, str]] = Counter()
    for link in links:
        if link.part and link.part != part:
            part = link.part
            yield f"    # {part}"
        used[link.upper, link.lower] += 1
        number = used[link.upper, link.lower] + used[link.lower, link.upper]
        ends = [
            f"{at}:{_interface(far, number)}"
            for at, far in ((link.upper, link.lower), (link.lower, link.upper))
        ]
        yield f'    - endpoints: ["{ends[0]}", "{ends[1]}"]'
        values = {**_domain(generator, link), **link.values}
        if values:
            yield f"      vars: {_flow(values)}"


def _domain(generator: Generator, link: LinkEntry) -> dict[str, object]:
    if link.area is None or generator.bgp:
        return {}
    if generator.isis:
        return {"level": "level-2" if link.area == BACKBONE else "level-1"}
    return {"area": link.area}


def _interface(far: str, number: int) -> str:
    """The name of the interface to a node: of the second link to it with a 2."""
    name = far if number == 1 else f"{far}-{number}"
    if len(name) > _LONGEST_INTERFACE:
        raise LabError(f"{name}: an interface has at most {_LONGEST_INTERFACE} characters")
    return name


def _flow(values: Mapping[str, object]) -> str:
    """Return a mapping of YAML in one line."""
    return "{" + ", ".join(f"{key}: {_scalar(value)}" for key, value in values.items()) + "}"


def _scalar(value: object) -> str:
    word = str(value)
    plain = _PLAIN.fullmatch(word) and word.lower() not in _KEYWORDS
    return word if plain else f'"{word}"'
