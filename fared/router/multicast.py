"""Whether BIER runs, and with it whether its code is loaded at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fared.core.bier import BierSettings
    from fared.paths.rib.table import RoutingTable
    from fared.paths.ted.events import BierUpdated, LocalLinksChanged
    from fared.router import events
    from fared.router.bier import BierRouting


class Multicast:
    """The part of the router that forwards BIER packets; ``bier`` None: it does not run."""

    def __init__(
        self, settings: BierSettings | None, table: RoutingTable, outputs: list[events.Output]
    ) -> None:
        self.bier: BierRouting | None = None
        if settings is not None:
            from fared.router.bier import BierRouting  # noqa: PLC0415 - see above

            self.bier = BierRouting(settings, table, outputs)

    def configure(self, settings: BierSettings | None) -> None:
        """Apply settings; to start or stop BIER takes a restart."""
        if self.bier is not None and settings is not None:
            self.bier.configure(settings)

    def handle(self, event: events.BierInput, now: float) -> None:
        """Take what the kernel holds, or its answer."""
        if self.bier is not None:
            self.bier.handle(event, now)

    def input(self, event: events.To | events.ToAll) -> None:
        """Take an input of the engines that concerns links."""
        if self.bier is not None:
            self.bier.input(event)

    def links_changed(self, protocol: str, change: LocalLinksChanged) -> None:
        """Take the full adjacencies of an area."""
        if self.bier is not None:
            self.bier.links_changed(protocol, change)

    def advertised(self, protocol: str, update: BierUpdated) -> None:
        """Take what a router advertises."""
        if self.bier is not None:
            self.bier.advertised(protocol, update)

    def routes_changed(self) -> None:
        """Take changed routes into account."""
        if self.bier is not None:
            self.bier.routes_changed()

    def process(self, now: float, *, frozen: bool) -> None:
        """Compute what changed and plan what is due; while ``frozen`` nothing is written."""
        if self.bier is not None:
            self.bier.process(now, frozen=frozen)

    def next_deadline(self) -> float | None:
        """When to call ``process`` at the latest."""
        return None if self.bier is None else self.bier.next_deadline()
