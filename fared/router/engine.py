"""The interface of an engine and its settings to the router, the same for any protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, Self

from fared.core.filters import Withheld
from fared.core.ids import NodeId, Prefix
from fared.core.routes import RouteSource, TagOf
from fared.paths.te.budget import AnnounceBudget
from fared.paths.ted import events as ted
from fared.protocols.igp import events as igp
from fared.protocols.igp.counters import ProtocolCounters
from fared.protocols.igp.database_limit import LimitView
from fared.protocols.igp.refusals import RefusedHello

EngineInput = igp.Input[Any, Any] | ted.Computed
EngineOutput = igp.Output | ted.Output


class EngineSettings(Protocol):
    """Settings of one engine that the router reads; the rest only the engine reads."""

    @property
    def hostname(self) -> str | None:
        """The advertised hostname."""

    @property
    def epoch(self) -> float:
        """Wall-clock time at ``now`` 0, seconds since 1970."""

    @property
    def drained(self) -> bool:
        """Whether this router is drained: others avoid it."""

    @property
    def redistributed(self) -> Mapping[RouteSource, int]:
        """The other protocols that it redistributes, with the tag of each in its own routes."""

    def with_clock(self, epoch: float, boot_count: int) -> Self:
        """The same with the clock offset, and the boot count of the router."""

    def drain(self) -> Self:
        """The same, drained."""


class Engine(Protocol):
    """A protocol without I/O: inputs go in, ``take_outputs`` returns the outputs."""

    settled: bool
    """Whether ``take_outputs`` has nothing to do."""

    def handle(self, event: EngineInput, now: float) -> None:
        """Process one input."""

    def receive(self, packets: Iterator[igp.Received], now: float) -> None:
        """Process packets that arrived together, as ``handle`` does one after another.

        After an exception the packets that ``packets`` has left are as yet unprocessed.
        """

    def tick(self, now: float) -> None:
        """Run what is due."""

    def next_deadline(self) -> float | None:
        """When to call ``tick`` at the latest."""

    def take_outputs(self) -> Sequence[EngineOutput]:
        """Return outputs, what is to be sent first; call until nothing is returned."""

    @property
    def instance(self) -> Any:  # noqa: ANN401 - for views of its own protocol
        """The live state of the process, which is not to be changed."""

    def databases_text(self, now: float) -> Iterator[str]:
        """Each database as text, with the ages of its entries."""

    def adjacency_progress(self) -> tuple[int, int, int]:
        """Interfaces that could have a full neighbor, those that have, neighbors still forming."""

    def refused(self, now: float) -> tuple[RefusedHello, ...]:
        """The hellos refused in the last minutes, by interface and source."""

    def tags(self) -> TagOf:
        """A function that returns the administrative tags of prefixes as they are now."""

    def withheld(self, prefix: Prefix) -> Iterator[Withheld]:
        """Yield the places that filters keep a prefix out of, with the reason."""

    def preference(self, prefix: Prefix, usual: int) -> int:
        """The preference of the route to a prefix: the usual one of the protocol, or another."""

    def borders(self) -> Iterator[tuple[int, NodeId]]:
        """The routers of each area, or level, that say that they are in others as well."""

    def externals(self) -> Iterator[tuple[NodeId, Prefix]]:
        """Prefixes of others that routers advertise as if they were theirs, by path type."""

    def contested(self, now: float) -> str | None:
        """An entry of the database that is ours, and that another router originates, too."""

    def activity(self) -> int:
        """A count of database events: constant in a quiet network."""

    @property
    def counters(self) -> ProtocolCounters:
        """Running totals since the start."""

    @property
    def boot_count(self) -> int:
        """The present boot count of sequence numbers; 0 without one."""

    @property
    def restarting(self) -> bool:
        """Whether it restarts gracefully: the routes from before the restart stay unchanged."""

    @property
    def restart_announced(self) -> bool:
        """Whether all neighbors know of a requested graceful restart."""

    @property
    def takes_routes(self) -> bool:
        """Whether the engine takes ``RoutesComputed``."""

    @property
    def budgets(self) -> Mapping[str, AnnounceBudget]:
        """The budgets of announced loads, by the name of the area or level."""

    @property
    def limits(self) -> Mapping[str, LimitView]:
        """The limits of the databases, by the name of the area or level."""

    @property
    def prefix_limit(self) -> LimitView:
        """The limit of the prefixes that LSAs or LSPs list."""

    @property
    def ranges(self) -> tuple[ted.AreaRange, ...]:
        """The area ranges that this router advertises: each gets a discard route."""
