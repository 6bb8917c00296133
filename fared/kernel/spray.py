"""Sprayed packets in the kernel: executes the operations of ``fib.spray``, and reads back.

``begin`` and ``end`` write rules and routes, within microseconds; ``Nft`` runs for milliseconds
between them, in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fared.kernel.fib import KernelFib
from fared.kernel.marks import KernelMarks
from fared.kernel.nft_listing import Counted
from fared.kernel.nftables import Nft, find_nft
from fared.kernel.spray_watch import SprayWatch
from fared.paths.fib.spray import SprayOperation, SprayState


class KernelSpray:
    """Marks, rounds and blocks in the namespace of the process."""

    def __init__(self, marks: KernelMarks, nft: Nft) -> None:
        self.marks = marks
        self.nft = nft
        self.counted: dict[int, Counted] = {}
        """Packets of each mark at the last reading."""

    def watch(self, changed: Callable[[], None]) -> SprayWatch:
        """Return a notifier for changes to objects that may be ours."""
        return SprayWatch(changed, self.marks.protocol)

    def begin(self, operations: Sequence[SprayOperation]) -> list[str]:
        """Write what marks need; return what was refused."""
        return self.marks.put(operations)

    def end(self, operations: Sequence[SprayOperation]) -> list[str]:
        """Delete what no mark needs any more; return what was refused."""
        return self.marks.delete(operations)

    def lift(self) -> None:
        """Let packets follow their flow, whatever nftables holds. Raises OSError."""
        self.marks.lift()

    def apply(self, operations: Sequence[SprayOperation]) -> list[str]:
        """Do all of it in one go; return what was refused. Raises NftError."""
        refused = self.begin(operations)
        self.nft.apply(operations)
        return refused + self.end(operations)

    def join(self, found: SprayState) -> SprayState:
        """Return the whole state, from what nftables has. Raises OSError."""
        families, skipped = self.marks.read()
        marks = {
            i: families.get(i, 0) if i in found.marks else 0 for i in {**found.marks, **families}
        }
        damaged = found.damaged or (found.match is not None and not skipped)
        return SprayState(found.match, marks, found.rounds, found.blocks, damaged)

    def read(self) -> SprayState:
        """Read everything in one go. Raises OSError."""
        found, self.counted = self.nft.read()
        return self.join(found)


def open_spray(fib: KernelFib) -> KernelSpray | None:
    """Return what sprays packets over the next hops of a FIB; None if nft is missing."""
    program = find_nft()
    if program is None:
        return None
    return KernelSpray(KernelMarks(fib.requests, fib.protocol, fib.settings), Nft(program))
