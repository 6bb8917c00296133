"""Pictures of the lab: figures in the colors of the page, whose errors are those of the lab."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fared.extensions.lab.errors import LabError
from fared.extensions.pictures import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check(path: Path) -> None:
    """Check, before anything runs, that a picture can be drawn. Raises LabError."""
    with _told():
        figures.check(path)


def figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches. Raises LabError without matplotlib."""
    with _told():
        return figures.figure(width, height)


def save(drawn: Figure, path: Path) -> None:
    """Write a figure. Raises LabError."""
    with _told():
        figures.save(drawn, path)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except figures.PictureError as error:
        raise LabError(str(error)) from error
