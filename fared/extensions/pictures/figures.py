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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg")
DPI = 144
_COLOR = re.compile(r"--(\w+): (#[0-9a-f]{6});")


class PictureError(ValueError):
    """A picture cannot be drawn or written."""


@cache
def colors() -> Mapping[str, str]:
    """Return the colors of the page by name: ``ink``, ``dim``, ``line``, ``accent``, ..."""
    style = files("fared.management.api").joinpath("static/page.css").read_text(encoding="utf-8")
    return dict(reversed(_COLOR.findall(style)))  # its first set is the light one


def series() -> tuple[str, ...]:
    """Return the colors of jobs, hosts or rows that are compared, most different ones first."""
    known = colors()
    return tuple(known[name] for name in ("load1", "reduced", "accent", "drained", "super", "sick"))


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
    known = colors()
    rcParams.update(
        {
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
    )
    return Figure(figsize=(width, height), layout="constrained")


def plain(axes: Axes) -> None:
    """Leave only the lower and the left edge, with a light grid behind what is drawn."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, linewidth=0.6)
    axes.set_axisbelow(True)


def save(drawn: Figure, path: Path) -> None:
    """Write a figure. Raises PictureError."""
    try:
        drawn.savefig(path, dpi=DPI, metadata={"Date": None} if path.suffix == ".svg" else None)
    except OSError as error:
        raise PictureError(f"{path}: {error.strerror}") from error
