"""An engine that says what a test has it say: only when the router acts on it is of interest."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Engine:
    """Says what a test has it say; its ``neighbors`` are all full."""

    said: list[object] = field(default_factory=list)
    neighbors: int = 1
    settled: bool = False
    takes_routes: bool = False
    restarting: bool = False
    ranges: tuple[()] = ()
    budgets: dict[str, object] = field(default_factory=dict)

    def handle(self, event: object, now: float) -> None:
        """Nothing follows from it."""

    def receive(self, packets: object, now: float) -> None:
        """Nothing follows from them either."""

    def tick(self, now: float) -> None:
        """Nothing is ever due."""

    def next_deadline(self) -> None:
        """Nothing ever will be."""

    def take_outputs(self) -> list[object]:
        """Say it."""
        said, self.said = self.said, []
        return said

    def adjacency_progress(self) -> tuple[int, int, int]:
        """All neighbors are full."""
        return self.neighbors, self.neighbors, 0

    def preference(self, prefix: object, usual: int) -> int:
        """The usual one."""
        return usual

    def activity(self) -> int:
        """Nothing happens."""
        return 0
