"""What the machines of workers and routers send and get: whoever has the sockets implements it."""

from __future__ import annotations

from typing import Protocol

from fared.extensions.ina.plan.model import BitString, Vertex
from fared.extensions.ina.slots.packet import Values


class WorkerPort(Protocol):
    """What a worker sends and gets."""

    def send(self, parent: Vertex, header: bytes, values: Values) -> None:
        """Send a packet to the first VAT node of a tree."""

    def result(self, chunk: int, values: Values | None, *, again: bool) -> None:
        """Take the result of a chunk, whose values are valid during the call only.

        None: the sum is complete, and another worker has it.
        ``again``: a former epoch gave it too; it must be the same.
        """

    def outdated(self, epoch: int) -> None:
        """A router runs a newer epoch than this worker."""

    def lacking(self, bits: BitString, *, silent: bool) -> None:
        """A router or a place of a ring waits for these workers; ``silent``: nothing comes."""

    def lost(self, bits: BitString) -> None:
        """The connection of these workers to their router broke."""


class AggregatorPort(Protocol):
    """What an aggregator sends. The buffer is valid during the call only."""

    def up(self, parent: Vertex, data: bytes | bytearray | memoryview) -> None:
        """Send a packet to a parent."""

    def down(self, router: Vertex, data: bytes | bytearray | memoryview) -> None:
        """Send a result to a router that passes it on."""

    def disseminate(self, bits: BitString, data: bytes | bytearray | memoryview) -> None:
        """Send a result to all workers of a bit string, by BIER or one by one."""

    def nack(self, sender: Vertex, data: bytes) -> None:
        """Tell a sender that its epoch is over."""
