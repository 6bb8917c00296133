"""The BIER prefixes of a saved IS-IS database."""

from __future__ import annotations

from collections.abc import Iterator

from fared.extensions.offline.isis.database import Contents
from fared.paths.ted.events import BierUpdated
from fared.protocols.isis.ids import fragment_of, node_of
from fared.protocols.isis.ted.bier import BierTable
from fared.protocols.isis.ted.fragment_prefixes import read_prefixes


def bier_prefixes(contents: Contents) -> Iterator[BierUpdated]:
    """Yield what each router advertises in each level."""
    table = BierTable()
    for level, lsps in contents.items():
        for identifier, lsp in lsps.items():
            found = read_prefixes(lsp, own=False, capacity_code=None).attributes
            table.put((level, node_of(identifier)), fragment_of(identifier), found, "", 0.0)
    yield from table.take()
