"""Pictures: figures of matplotlib in the colors of the daemon's page, written as PNG or SVG.

matplotlib is an optional dependency (the extra ``plot``), imported only when a picture is wanted.
What draws calls ``check`` before anything runs, then ``figure`` and ``save``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg")
DPI = 144
_SERIES = ("load1", "reduced", "accent", "drained", "sick", "super", "warn", "dim")
_COLOR = re.compile(r"--(\w+): (#[0-9a-f]{6});")


class PictureError(ValueError):
    """A picture cannot be drawn or written."""


@cache
def colors() -> Mapping[str, str]:
    """Return the colors of the page by name: ``ink``, ``dim``, ``line``, ``accent``, ..."""
    style = files("fared.management.api").joinpath("static/page.css").read_text(encoding="utf-8")
    return dict(reversed(_COLOR.findall(style)))  # its first set is the light one


def color(number: int) -> str:
    """Return the color of a job, phase or row among others: 0, 1, ... differ most."""
    return colors()[_SERIES[number % len(_SERIES)]]


def load() -> Colormap:
    """Return the colors of load, from pale to strong, as in the page."""
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415 - as below

    known = colors()
    names = ("pod", "load0", "load1", "ink")
    return LinearSegmentedColormap.from_list("load", [known[name] for name in names])


def check(path: Path) -> None:
    """Check, before anything runs, that a picture can be drawn. Raises PictureError."""
    if path.suffix not in SUFFIXES:
        raise PictureError(f"{path}: the format of a picture is .png or .svg")
    figure(1.0, 1.0)


def figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches. Raises PictureError without matplotlib."""
    try:
        from matplotlib import rcParams  # noqa: PLC0415 - heavy, and not everybody has it
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise PictureError("pictures require matplotlib: pip install 'fared[plot]'") from error
    rcParams.update(_style())  # axes read it when they are made, and text when it is written
    return Figure(figsize=(width, height), layout="constrained")


def _style() -> dict[str, Any]:
    known = colors()
    return {
        "text.color": known["ink"],
        "axes.labelcolor": known["ink"],
        "axes.edgecolor": known["line"],
        "axes.titleweight": "bold",
        "xtick.color": known["dim"],
        "ytick.color": known["dim"],
        "grid.color": known["line"],
        "legend.frameon": False,
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": "fared",  # the same picture has the same bytes
    }


def save(drawn: Figure, path: Path) -> None:
    """Write a figure. Raises PictureError."""
    metadata = {"Date": None} if path.suffix == ".svg" else None
    try:
        drawn.savefig(path, dpi=DPI, metadata=metadata)
    except OSError as error:
        raise PictureError(f"{path}: {error.strerror}") from error
