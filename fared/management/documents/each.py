"""The views of each protocol, loaded only if it runs, since they import its codec.

Routes, topology, timers and tables of a protocol are shown without views of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, cast

from fared.core.ids import NodeId, Prefix
from fared.management.documents.census import Census
from fared.management.documents.context import ViewContext
from fared.management.documents.graceful_restart import ProtocolRestart
from fared.management.documents.interface import InterfaceEntry
from fared.management.documents.lsdb import LsdbFile
from fared.management.documents.neighbor import NeighborEntry
from fared.management.documents.sliced import Work
from fared.paths.rib.selector import Advertisements
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.model import PrefixReachability
from fared.protocols.igp.counted import Countable
from fared.router.instance import ProtocolInstance
from fared.router.protocols import BGP, ISIS, OSPF

Perspective = Callable[[NodeId], Advertisements]
"""Returns the advertisements of a prefix that a given router uses."""
OwnPrefixes = Mapping[int, tuple[PrefixReachability, ...]]
"""What a router advertises, by area or level, with what it leaks: its own TED lacks that."""


class ProtocolViews(Protocol):
    """The interface of a protocol's views; the documents combine those of all protocols."""

    COUNTABLE: Countable
    """What the protocol's counters can count."""

    def interfaces(self, context: ViewContext) -> Sequence[InterfaceEntry]:
        """Return the interfaces that the protocol runs on."""

    def neighbors(self, context: ViewContext) -> Sequence[NeighborEntry]:
        """Return the neighbors."""

    def in_vain(self, context: ViewContext) -> Collection[str]:
        """Return the interfaces with adjacencies over which no path can lead."""

    def database(
        self, context: ViewContext, kind: str | None, entry_id: str | None
    ) -> Work[Mapping[str, Sequence[Any]]]:
        """Return the requested entries of the database, under the keys of ``show database``."""

    def graceful_restart(self, context: ViewContext) -> ProtocolRestart | None:
        """Return the protocol's part of ``show graceful-restart``, None without one."""

    def timers(self, context: ViewContext) -> Iterator[tuple[str, str, float | None]]:
        """Yield each timer, its subject, and the seconds until it fires."""

    def status(self, context: ViewContext) -> Any:  # noqa: ANN401 - each its own schema
        """Return the protocol's part of ``show status``."""

    def unready(self, context: ViewContext) -> tuple[str, list[str]]:
        """Return the check of ``validate`` on neighbors, and why those that fail it do."""

    def sizes(self, context: ViewContext) -> Iterator[tuple[str, int]]:
        """Yield the number of entries in the database of each area."""

    def census(self, context: ViewContext) -> Census:
        """Return the protocol's counts for the metrics."""

    def lsdb(self, context: ViewContext) -> Work[LsdbFile]:
        """Return the whole database as a file, each protocol by its own schema."""


_HERE = "fared.management.documents.views"
_VIEWS = MappingProxyType({OSPF: f"{_HERE}.ospf", ISIS: f"{_HERE}.isis", BGP: f"{_HERE}.bgp"})


def _views(protocol: str) -> ProtocolViews:
    views: Any = importlib.import_module(_VIEWS[protocol])
    return cast("ProtocolViews", views)


_PERSPECTIVES = MappingProxyType({OSPF: f"{_HERE}.ospf_path", ISIS: f"{_HERE}.isis_path"})
"""By protocol whose routers do not use all of a database, or not of their own part of it."""


def perspective(
    protocol: str, solver: RouteSolver, prefix: Prefix, own: Callable[[Prefix], OwnPrefixes]
) -> Perspective:
    """Return the function that gives each router's view of a prefix's advertisements.

    ``own``: what the router of the solver advertises, asked where its TED may lack some of it.
    """
    if protocol in _PERSPECTIVES:
        views = importlib.import_module(_PERSPECTIVES[protocol])
        found: Perspective = views.Perspectives(solver, own(prefix), prefix).of
        return found
    advertised = solver.advertisements(prefix)
    return lambda _: advertised


def own_prefixes(context: ViewContext, protocol: str, prefix: Prefix) -> OwnPrefixes:
    """Return what this router advertises of a prefix, as far as its protocol's TED lacks some."""
    views = importlib.import_module(_PERSPECTIVES[protocol])
    found: OwnPrefixes = views.own_prefixes(context, prefix)
    return found


def load_views(protocols: Iterable[str]) -> None:
    """Import the views of these protocols."""
    for name in protocols:
        if name in _VIEWS:
            _views(name)


def views_of(context: ViewContext) -> Iterator[tuple[ProtocolInstance, ProtocolViews]]:
    """Yield the requested protocols with their views."""
    for instance in context.instances:
        if instance.name in _VIEWS:
            yield instance, _views(instance.name)
