"""What a generated topology declares: its parameters, its nodes and its links.

A topology is a frozen dataclass in a module of its own, whose ``GENERATOR`` is the class; an entry
in ``registry`` makes its command. From ``clos3``:

    @dataclass(frozen=True)
    class Clos3(Generator):
        '''A three-stage Clos fabric: leaves that are linked to all spines.'''

        spines: Annotated[int, Option(SIZE, "Number of spines.")] = 4

The docstring is the help of the command, and up to the first colon the title of the file; a field
with an ``Option`` is an option. Areas of links become those of OSPF, or the levels of IS-IS.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import click

from fared.core.units import parse_bandwidth
from fared.extensions.lab.labels import BGP, HELLO, IPV4, ISIS, OSPF, PROTOCOLS, SESSIONS
from fared.extensions.lab.shipped import SUFFIX

HOST = "host"
"""The group of nodes without a daemon; every other group is one of routers."""
SIZE = click.IntRange(min=1, max=100)
MOST_NODES = 1000
YES_NO = ("yes", "no")


@dataclass(frozen=True)
class Option:
    """How a field is read from the command line, and its help."""

    type: click.ParamType[Any] | Callable[[str], Any]
    help: str


@dataclass(frozen=True)
class NodeEntry:
    """A node: its group, its own labels, and its area of IS-IS if it is in one of its own."""

    name: str
    group: str
    area: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LinkEntry:
    """A link between two nodes, named; ``part`` is the comment above it and those that follow.

    ``area`` is that of OSPF: 0, which is level 2 in IS-IS, or another, which is level 1. None is
    the only area of the fabric. ``values`` are other vars of the link: ``rate``, ``cost``.
    """

    upper: str
    lower: str
    part: str = ""
    area: int | None = None
    values: Mapping[str, object] = field(default_factory=dict)


def rate(text: str) -> str:
    """Check a rate in bit/s, which remains text. Raises BadParameter."""
    try:
        parse_bandwidth(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return text


def spoken_rate(text: str) -> str:
    """Return a rate as sentences have it: ``100 Mbit/s``."""
    return re.sub(r"^([\d.]+)\s*", r"\1 ", text) + "bit/s"


@dataclass(frozen=True, kw_only=True)
class Generator(ABC):
    """A topology; these parameters are those of all. Impossible ones raise LabError."""

    protocol: Annotated[str, Option(click.Choice(PROTOCOLS), "IS-IS routes IPv6 too.")] = OSPF
    sessions: Annotated[
        str, Option(click.Choice(SESSIONS), "Of BGP; those other than ipv4 route IPv6 too.")
    ] = IPV4
    rate: Annotated[str, Option(rate, "Of every link between routers, bit/s.")] = "100M"
    hello: Annotated[int, Option(SIZE, "Hello interval, seconds.")] = int(HELLO.default)
    name: Annotated[
        str, Option(click.STRING, "Of lab and file; by default NAME, or NAME-isis, NAME-bgp.")
    ] = ""

    privileged: Annotated[
        str,
        Option(click.Choice(YES_NO), "no: containers begin with all sysctls."),
    ] = YES_NO[0]

    @classmethod
    def command(cls) -> str:
        """The name of the command: that of the module, with dashes."""
        return cls.__module__.rpartition(".")[2].replace("_", "-")

    @classmethod
    def title(cls) -> str:
        """What it is: the beginning of the docstring."""
        return re.split(r"[:.]", cls.summary(), maxsplit=1)[0]

    @classmethod
    def summary(cls) -> str:
        """The first paragraph of the docstring, in one line."""
        return " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split())

    @property
    def lab(self) -> str:
        """The name of lab and file."""
        return self.name or self.command() + ("" if self.protocol == OSPF else f"-{self.protocol}")

    @property
    def file(self) -> str:
        """The name of the file, under which containers look for it."""
        return self.lab + SUFFIX

    @property
    def isis(self) -> bool:
        """Whether it runs IS-IS."""
        return self.protocol == ISIS

    @property
    def bgp(self) -> bool:
        """Whether it runs BGP, which has no areas."""
        return self.protocol == BGP

    @abstractmethod
    def size(self) -> str:
        """Return what there is of it, as numbers: it follows the title in the head of the file."""

    def links(self) -> str:
        """Return what links are like: it follows the size."""
        return f"every link {spoken_rate(self.rate)}"

    def remarks(self) -> str:
        """Return what else a reader of the file should know: sentences, or nothing."""
        return ""

    @abstractmethod
    def all_nodes(self) -> Iterator[NodeEntry]:
        """Yield routers and hosts; their order is that of addresses."""

    @abstractmethod
    def all_links(self) -> Iterator[LinkEntry]:
        """Yield links; each interface gets the name of the node at the far end."""

    def labels(self, group: str) -> Mapping[str, str]:  # noqa: ARG002 - of one group
        """Return labels of a group beside kind, rate and level."""
        return {}


def count(number: int) -> range:
    """Return the numbers from 1."""
    return range(1, number + 1)


def counted(number: int, what: str) -> str:
    """Return "one host", or how many."""
    return f"one {what}" if number == 1 else f"{number} {what}s"


def host_links(router: str, host: str, routers: int, hosts: int) -> Iterator[LinkEntry]:
    """Yield the links of numbered routers to their hosts, numbered through."""
    for n in count(routers * hosts):
        yield LinkEntry(f"{router}{(n - 1) // hosts + 1}", f"{host}{n}", "hosts")
