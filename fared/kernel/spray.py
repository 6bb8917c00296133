"""Sprayed packets in the kernel: executes the operations of ``fib.spray``, reads back, and watches.

``begin`` and ``end`` write rules and routes, within microseconds; ``SprayTable`` runs for
milliseconds between them, in a thread.

A transaction is one message, which must fit the buffer of nft's socket. In a user namespace nft
may not enlarge it (SO_SNDBUFFORCE, socket(7)), and 200 KB hold some 2,500 packets of rounds. Larger
changes then take several transactions.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterable, Sequence

from fared.kernel.fib import KernelFib
from fared.kernel.marks import KernelMarks
from fared.kernel.netlink import attributes, messages, notifications
from fared.kernel.nft import CounterValue, NftError, NftProgram, NftWatch, find_nft
from fared.kernel.rtnetlink import RTMSG
from fared.kernel.spray_listing import parse
from fared.kernel.spray_table import TABLE, Transaction
from fared.kernel.subscription import subscribe
from fared.paths.fib.spray import SprayOperation, SprayState

_PIECE = 30_000
"""Characters; a message for the kernel is up to four times as long."""
_RTNLGRP_IPV4_RULE, _RTNLGRP_IPV6_RULE = 8, 19
_FRA_PROTOCOL = 21


class SprayTable:
    """The table of nftables, in the network namespace of the calling thread."""

    def __init__(self, program: str) -> None:
        self.program = NftProgram(program)

    def apply(self, operations: Iterable[SprayOperation]) -> None:
        """Execute operations as one transaction if it is not too long. Raises NftError."""
        transaction = Transaction(operations)
        try:
            self.program.execute(transaction.text)
        except NftError as error:
            if error.errno != errno.EMSGSIZE:
                raise
            for piece in transaction.pieces(_PIECE):
                self.program.execute(piece)

    def read(self) -> tuple[SprayState, dict[int, CounterValue]]:
        """Return the content of the table, and the packets of each mark. Raises NftError."""
        return parse(self.program.list_table("inet", TABLE))


class KernelSpray:
    """Marks, rounds and blocks in the namespace of the process."""

    def __init__(self, marks: KernelMarks, nft: SprayTable) -> None:
        self.marks = marks
        self.nft = nft
        self.counted: dict[int, CounterValue] = {}
        """Packets of each mark at the last reading."""

    def watch(self, changed: Callable[[], None]) -> SprayWatch:
        """Return a notifier for changes that others make to objects that may be ours."""
        return SprayWatch(changed, self.marks, self.nft.program)

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


class SprayWatch:
    """Calls ``changed`` when others may have changed the table, or rules of our protocol.

    ``KernelMonitor`` reports the routes of marks.
    """

    def __init__(
        self, changed: Callable[[], None], marks: KernelMarks, program: NftProgram
    ) -> None:
        self._changed = changed
        self._protocol = bytes([marks.protocol])
        self._nft = NftWatch(changed, TABLE, program)
        self._rules = subscribe((_RTNLGRP_IPV4_RULE, _RTNLGRP_IPV6_RULE), marks.port)

    def start(self) -> None:
        """Report from now on."""
        self._nft.start()
        asyncio.get_running_loop().add_reader(self._rules, self._report)

    def close(self) -> None:
        """Stop and close the sockets."""
        self._nft.close()
        asyncio.get_running_loop().remove_reader(self._rules)
        self._rules.close()

    def settle(self) -> None:
        """Report what has changed until now, after a change of our own."""
        self._nft.settle()
        self._report()

    def _report(self) -> None:
        changed = False
        for received in notifications(self._rules):
            changed |= received is None
            for _, _, _, _, body in messages(received or b""):
                changed |= (
                    attributes(body, RTMSG.size).get(_FRA_PROTOCOL, b"")[:1] == self._protocol
                )
        if changed:
            self._changed()


def open_spray(fib: KernelFib) -> KernelSpray | None:
    """Return what sprays packets over the next hops of a FIB; None if nft is missing."""
    program = find_nft()
    if program is None:
        return None
    return KernelSpray(KernelMarks(fib.requests, fib.protocol, fib.settings), SprayTable(program))
