"""The BIER prefixes of a saved IS-IS database."""

from __future__ import annotations

from collections.abc import Iterator

from fared.isis.ids import fragment_of, node_of
from fared.isis.ted.bier import BierTable
from fared.isis.ted.fragment_prefixes import read_prefixes
from fared.offline.isis.database import Contents
from fared.ted.events import BierUpdated


def bier_prefixes(contents: Contents) -> Iterator[BierUpdated]:
    """Yield what each router advertises in each level."""
    table = BierTable()
    for level, lsps in contents.items():
        for identifier, lsp in lsps.items():
            found = read_prefixes(lsp, own=False, capacity_code=None).attributes
            table.put((level, node_of(identifier)), fragment_of(identifier), found, "", 0.0)
    yield from table.take()
