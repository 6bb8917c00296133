"""BIER in the kernel: writes states of ``fared.paths.fib.bier`` and reads whether they are intact.

The first change of a process rewrites the rules of a former one in place, whatever they are: the
hooks stay, and packets see the old rules or the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fared.kernel.bier_table import (
    FAMILY,
    NOTHING,
    TABLE,
    Chain,
    Listed,
    chains_of,
    read_listing,
    removal,
    transaction,
)
from fared.kernel.nft import CounterValue, NftError, NftProgram, NftWatch, find_nft
from fared.paths.fib.bier import BierFib


class KernelBier:
    """The table of BIER in the namespace of the process; ``counted`` at the last reading."""

    def __init__(self, nft: NftProgram) -> None:
        self.counted: Mapping[str, CounterValue] = {}
        self._nft = nft
        self._chains: dict[str, Chain] | None = None
        """What this process has written, None if it may be something else."""
        self._listed = NOTHING

    def watch(self, changed: Callable[[], None]) -> NftWatch:
        """Return a notifier for what others change in the table."""
        return NftWatch(changed, TABLE, self._nft)

    def adopt(self) -> int:
        """Read what a former process left; return its highest mark. Raises NftError."""
        return self._read().highest_mark

    def intact(self) -> bool:
        """Whether the table is as this process has left it. Raises NftError."""
        before = self._listed
        if self._read().digest == before.digest and self._chains is not None:
            return True
        self._chains = None
        return False

    def doubt(self) -> None:
        """Know that others have changed the table while it was written: it is not intact."""
        self._chains = None

    def write(self, fib: BierFib) -> None:
        """Change the table to a state. Raises NftError, and then nothing has changed."""
        known, self._chains = self._chains, None
        if known is not None:
            self._nft.execute(transaction(fib, known, self._listed))
        else:
            self._rewrite(fib)
        self._read()
        self._chains = chains_of(fib)

    def _rewrite(self, fib: BierFib) -> None:
        listed = self._read()
        try:
            self._nft.execute(transaction(fib, {}, listed))
        except NftError:
            # What others have put there may be in the way of ours.
            if not listed.chains:
                raise
            self._nft.execute(removal() + transaction(fib, {}, NOTHING))

    def remove(self) -> None:
        """Remove the table. Raises NftError."""
        self._chains = None
        if self._nft.list_table(FAMILY, TABLE):
            self._nft.execute(removal())

    def _read(self) -> Listed:
        self._listed = read_listing(self._nft.list_table(FAMILY, TABLE))
        self.counted = self._listed.counters
        return self._listed


def open_bier() -> KernelBier | None:
    """Return what forwards BIER packets; None if nft is missing."""
    program = find_nft()
    return None if program is None else KernelBier(NftProgram(program))
