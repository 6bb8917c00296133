"""``show memory``: the daemon's resources and the sizes of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fared.management.documents import human
from fared.management.documents.cells import Columns, Styled, judged
from fared.management.documents.declare import Answer, Document
from fared.management.documents.facts import Facts, Seconds

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB"


class TableSize(Facts):
    """The number of ``entries`` of a ``table``: lsdb, ted, prefixes, rib, routes, groups and so on.

    ``area`` (of ``proto``) where there is one for each, else None. ``limit`` of ``entries``, and
    how full the table is: ``room``, ``warning`` (three quarters), ``full`` (it ignores what is
    new); None: unlimited. ``ignored`` LSAs, LSPs or prefixes, and how often it was full, since the
    start.
    """

    table: str
    proto: str | None
    area: str | None
    entries: int
    limit: int | None
    state: str | None
    ignored: int
    times_full: int


class Memory(Answer, tag="fared-memory/1"):
    """``show memory``. Argument ``proto`` narrows ``tables`` to those of a protocol."""

    cpu: Seconds
    """User and system time since start."""
    resident: Annotated[int, _mebibytes]
    """Bytes of memory now."""
    peak_resident: Annotated[int, _mebibytes]
    descriptors: int
    """The number of open descriptors."""
    client_descriptors: int
    """Clients are refused from this number on: the rest is for the router's own sockets."""
    descriptor_limit: int | None
    """None: unlimited."""
    event_loop_lag: Seconds
    tables: list[TableSize]

    def show(self, paper: Paper) -> None:
        """Print the resources, then the tables."""
        paper.facts(self, _RESOURCES)
        paper.line()
        paper.table(self.tables, _TABLES)


def _descriptors(memory: Memory) -> str:
    limit = memory.descriptor_limit or "any number"
    clients = f"clients get those below {memory.client_descriptors}"
    return f"{memory.descriptors} of {limit}; {clients}"


def _fullness(size: TableSize) -> Styled | None:
    """How full a table is, and what that has cost since the start."""
    if size.state is None:
        return None
    cost = f", {size.ignored} ignored, full {size.times_full} times" if size.ignored else ""
    return judged(size.state + cost, good=size.state == "room")


_RESOURCES: Columns = {
    "Memory": "{resident}, maximum {peak_resident}",
    "CPU": "cpu",
    "Descriptors": _descriptors,
    "Loop lag": "event_loop_lag",
}
_TABLES: Columns = {
    "Table": "table",
    "Protocol": lambda size: human.PROTOCOLS.get(size.proto, ""),
    "Area": lambda size: size.area,
    ">Entries": "entries",
    ">Limit": lambda size: None if size.limit is None else str(size.limit),
    "State": _fullness,
}
DOCUMENT = Document(
    Memory,
    "memory:memory",
    "Memory, descriptors and CPU of the daemon. The sizes of its tables are included.",
    narrowed=True,
)
