"""What documents are printed on: tables, headings, facts, coloured words.

Only the client loads it, as it imports rich. Tables fit 80 columns; on a narrower terminal a row
takes several lines, and none breaks inside a word. Cells are ``Text``, so that names advertised by
neighbors are never read as markup.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from fared.management.documents import cells, human
from fared.management.documents.cells import Cell as Shown
from fared.management.documents.cells import Columns
from fared.management.documents.facts import Facts

R = TypeVar("R", bound=Facts)
Json = dict[str, Any]
_UNBOUNDED = 1000
_GAP = 2
_INDENT = 4
"""Columns before what continues a line."""


def console(width: int | None = None) -> Console:
    """Return a console for stdout that adds nothing to the text.

    With NO_COLOR it uses not even bold, since the user wants plain text.
    """
    return Console(
        width=width,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
    )


def table(*columns: str) -> Table:
    """Return a table; ``>`` before a column's name aligns it right, ``~`` lets it wrap."""
    grid = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for column in columns:
        name = column.lstrip(">~")
        grid.add_column(
            name,
            justify="right" if column.startswith(">") else "left",
            no_wrap=not column.startswith("~"),
            overflow="fold",
        )
    return grid


def emit(out: Console, grid: Table) -> None:
    """Print a table; on a terminal rows that do not fit take several lines, elsewhere long ones."""
    if not grid.row_count:
        out.print(Text("none", style="dim"))
        return
    for column in grid.columns:
        if column.no_wrap:
            cells = (cell.plain if isinstance(cell, Text) else str(cell) for cell in column.cells)
            column.min_width = max(map(cell_len, (*cells, str(column.header))))
    unbounded = out.options.update(width=_UNBOUNDED)
    width, least = out.width, Measurement.get(out, unbounded, grid).minimum
    if least > width and out.is_terminal:
        _emit_narrow(out, grid, [_least(out, column) for column in grid.columns])
        return
    try:
        out.width = max(width, least)
        out.print(grid, crop=False)
    finally:
        out.width = width


def _least(out: Console, column: Column) -> int:
    """Return the width that a column needs: of its longest value, or word if it wraps."""
    if column.no_wrap:
        return column.min_width or 0
    unbounded = out.options.update(width=_UNBOUNDED)
    cells = (column.header, *column.cells)
    return max(Measurement.get(out, unbounded, cell).minimum for cell in cells)


def _emit_narrow(out: Console, grid: Table, least: list[int]) -> None:
    """Print each row in as many lines as its columns need; all but the first are indented."""
    lines: list[list[int]] = [[]]
    room = out.width
    for index, width in enumerate(least):
        if width > room and lines[-1]:
            lines.append([])
            room = out.width - _INDENT
        lines[-1].append(index)
        room -= width + _GAP
    styles = [Style.parse("bold"), *(row.style or "" for row in grid.rows)]
    rows = zip(*((column.header, *column.cells) for column in grid.columns), strict=True)
    for style, row in zip(styles, rows, strict=True):
        for number, line in enumerate(lines):
            if number and not any(str(row[index]) for index in line):
                continue
            part = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
            for index in line:
                column = grid.columns[index]
                part.add_column(
                    justify=column.justify, no_wrap=column.no_wrap, min_width=least[index]
                )
            part.add_row(*(row[index] for index in line), style=style)
            out.print(Padding(part, (0, 0, 0, _INDENT if number else 0)), crop=False)


class Paper:
    """Where a document is printed; ``now`` is Unix time."""

    def __init__(self, out: Console, now: float) -> None:
        self._out = out
        self._rates_told = False
        self.now = now

    @property
    def width(self) -> int:
        """The columns of the terminal, or of what is written elsewhere."""
        return self._out.width

    def ago(self, at: float) -> str:
        """Return how long ago a Unix time was."""
        return human.duration(self.now - at)

    def line(self, text: Shown = "") -> None:
        """Print a line, an empty one without text."""
        self._out.print(_text(text))

    def rates(self) -> None:
        """Say the unit of all rates above and below, once."""
        if not self._rates_told:
            self.line(cells.dim(human.RATES))
        self._rates_told = True

    def long(self, text: Shown) -> None:
        """Print lines as they are for programs; a terminal has them broken at words."""
        if not self._out.is_terminal:
            self._out.print(_text(text), soft_wrap=True)
            return
        for line in _text(text).split("\n", allow_blank=True):
            if cell_len(line.plain) <= self._out.width:
                self._out.print(line)
                continue
            first, *rest = line.wrap(self._out, self._out.width - _INDENT)
            self._out.print(first)
            for part in rest:
                part.rstrip()
                self._out.print(Text(" " * _INDENT).append_text(part))

    def heading(self, text: str, *, first: bool = False) -> None:
        """Print a line in bold, after an empty line unless it is the first."""
        if not first:
            self._out.print()
        self._out.print(Text(text, style="bold"))

    def facts(self, row: Facts, facts: Columns) -> None:
        """Print names and values of a row in two columns; None leaves one out."""
        self.pairs(cells.facts(row, facts))

    def pairs(self, pairs: Iterable[tuple[str, Shown]]) -> None:
        """Print names and values in two columns."""
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in pairs:
            grid.add_row(name, _text(value))
        self._out.print(grid)

    def indented(self, lines: Iterable[str]) -> None:
        """Print lines below a heading."""
        self._out.print(Padding(Text("\n".join(lines)), (0, 0, 0, 2)))

    def table(
        self, rows: Iterable[R], columns: Columns, *, bold: Callable[[R], bool] | None = None
    ) -> None:
        """Print a table, or ``none``; rows for which ``bold`` holds are bold."""
        grid = table(*columns)
        for row in rows:
            shown = (_text(cells.cell(row, each) or "") for each in columns.values())
            grid.add_row(*shown, style="bold" if bold is not None and bold(row) else None)
        emit(self._out, grid)

    def more(self, rows: Sequence[Facts], columns: Columns) -> None:
        """Print a table after an empty line; nothing if there are no rows."""
        if rows:
            self.line()
            self.table(rows, columns)

    def grid(self, columns: Iterable[str], rows: Iterable[Iterable[Shown]]) -> None:
        """Print a table of cells, or ``none``."""
        grid = table(*columns)
        for row in rows:
            grid.add_row(*map(_text, row))
        emit(self._out, grid)

    def by_protocol(self, rows: Iterable[R]) -> Iterator[tuple[str, list[R]]]:
        """Yield the rows of each protocol (``proto``), under its name if there are several."""
        found: dict[str, list[R]] = {}
        for row in rows:
            found.setdefault(getattr(row, "proto"), []).append(row)  # noqa: B009 - not every row's
        for index, (proto, members) in enumerate(found.items()):
            if len(found) > 1:
                self.heading(human.PROTOCOLS.get(proto, proto), first=index == 0)
            yield proto, members
        if not found:
            self.line("none")

    def by_family(self, rows: Iterable[R]) -> Iterator[list[R]]:
        """Yield the rows of each family (``prefix``), the lengths of whose addresses differ."""
        found: dict[bool, list[R]] = {}
        for row in rows:
            found.setdefault(":" in getattr(row, "prefix"), []).append(row)  # noqa: B009 - likewise
        for index, members in enumerate(found.values()):
            if index:
                self.line()
            yield members
        if not found:
            self.line("none")


def _text(shown: Shown) -> Text:
    """Assemble what rich prints."""
    if isinstance(shown, str):
        return Text(shown)
    parts = (shown,) if isinstance(shown, cells.Styled) else shown
    return Text.assemble(*parts)
