"""The table of sprayed packets (``nft_table``), changed and listed by ``nft``.

A transaction is one message, which must fit the buffer of nft's socket. In a user namespace nft
may not enlarge it (SO_SNDBUFFORCE, socket(7)), and 200 KB hold some 2,500 packets of rounds. Larger
changes then take several transactions.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable

from fared.kernel.nft_listing import Counted, parse
from fared.kernel.nft_program import NftError, NftProgram, find_nft
from fared.kernel.nft_table import TABLE, Transaction
from fared.paths.fib.spray import SprayOperation, SprayState

__all__ = ["Nft", "NftError", "find_nft"]

_PIECE = 30_000
"""Characters; a message for the kernel is up to four times as long."""


class Nft:
    """Runs ``nft`` in the network namespace of the calling thread."""

    def __init__(self, program: str) -> None:
        self._nft = NftProgram(program)

    def apply(self, operations: Iterable[SprayOperation]) -> None:
        """Execute operations as one transaction if it is not too long. Raises NftError."""
        transaction = Transaction(operations)
        try:
            self._nft.execute(transaction.text)
        except NftError as error:
            if error.errno != errno.EMSGSIZE:
                raise
            for piece in transaction.pieces(_PIECE):
                self._nft.execute(piece)

    def read(self) -> tuple[SprayState, dict[int, Counted]]:
        """Return the content of the table, and the packets of each mark. Raises NftError."""
        return parse(self._nft.list_table("inet", TABLE))
