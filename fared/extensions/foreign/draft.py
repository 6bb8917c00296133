"""A configuration of fared in the making: settings with the lines that they come from.

Readers of other configurations put settings here, by their path in ``fared.yaml``, and name every
line that they do not take. ``settled`` then loads the text by the rules of ``fared.config``: what
they refuse is taken out and listed too, so what remains is valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from fared.config import ConfigErrors, load_text
from fared.config.errors import ConfigError, format_path

Path = tuple[str, ...]
HIDDEN: Final = "<hidden>"
_SECRET: Final = re.compile(
    r"(?i)(?<![\w-])(\S*password|passwords|key-string|authentication-key|auth-key|secret|md5|clear)"
    r"\s+.+"
)
"""Words of FRR and BIRD behind which a key may stand; all behind them is hidden."""


class SourceLine(NamedTuple):
    """A line of the file that is read; ``file`` names another one that it includes."""

    number: int
    text: str
    file: str = ""

    @property
    def place(self) -> str:
        """The place as people write it."""
        return f"{self.file}:{self.number}" if self.file else f"line {self.number}"

    @property
    def shown(self) -> str:
        """The line without its secrets, in at most 80 columns."""
        text = _SECRET.sub(rf"\1 {HIDDEN}", " ".join(self.text.split()))
        text = "".join(c if c.isprintable() else "?" for c in text)
        return text if len(text) <= 80 else f"{text[:77]}..."


class Remark(NamedTuple):
    """What a reader has to say of a line."""

    source: SourceLine
    reason: str

    def __str__(self) -> str:
        return f"{self.source.place}: {self.source.shown}: {self.reason}"


class Draft:
    """``tree`` is the document; ``comments`` stand beside its entries.

    ``left`` are the lines that are not taken, ``differs`` those that are taken and mean something
    else to fared, or need something of the operator.
    """

    def __init__(self) -> None:
        self.tree: dict[str, Any] = {}
        self.sources: dict[Path, SourceLine] = {}
        self.comments: dict[Path, str] = {}
        self.left: list[Remark] = []
        self.differs: list[Remark] = []

    def put(self, path: Path, value: object, source: SourceLine | None, comment: str = "") -> None:
        """Set a setting; one that is there already is replaced."""
        at = self.tree
        for key in path[:-1]:
            if not isinstance(at.get(key), dict):
                at[key] = {}
            at = at[key]
        at[path[-1]] = value
        if source is not None:
            self.sources[path] = source
        if comment:
            self.comments[path] = comment

    def get(self, path: Path) -> Any:  # noqa: ANN401 - any value of YAML
        """Return the setting at a path, None if there is none."""
        at: Any = self.tree
        for key in path:
            if not isinstance(at, dict) or key not in at:
                return None
            at = at[key]
        return at

    def leave(self, source: SourceLine, reason: str) -> None:
        """List a line that is not taken."""
        self.left.append(Remark(source, reason))

    def differ(self, source: SourceLine, reason: str) -> None:
        """List a line that is taken, with what is different."""
        self.differs.append(Remark(source, reason))

    @property
    def protocols(self) -> list[str]:
        """The protocols that would run."""
        return [name for name in ("ospf", "isis", "bgp") if name in self.tree]

    def settle(self, render: Callable[[], str]) -> str:
        """Take out what the configuration refuses; return the text, which is valid.

        ``render`` writes the text of what is left.
        """
        for _ in range(len(self.sources) + 1):  # each round takes out a setting at least
            text = render()
            try:
                load_text(text, most=len(text))
            except ConfigErrors as errors:
                places = _SettingPlaces(self.sources)
                for error in errors.errors:
                    self._take_out(error, places)
            else:
                return text
        raise AssertionError("not settled")  # each round has taken out a setting

    def _take_out(self, error: ConfigError, places: _SettingPlaces) -> None:
        """Take out the setting of an error, or all that the nearest place around it holds."""
        at = _around(error.path)
        own = (places.own[place] for place in at if place in places.own)
        inside = (places.inside.get(place, ()) for place in at)
        for some in (*([path] for path in own), *inside):
            if found := [path for path in some if self.get(path) is not None]:
                break
        for path in found:
            self.leave(self.sources[path], f"fared refuses it: {error.text}")
            self._remove(path)

    def _remove(self, path: Path) -> None:
        """Remove a setting, and what around it holds nothing more and was not put by itself."""
        holder = self.get(path[:-1]) if len(path) > 1 else self.tree
        if not isinstance(holder, dict):  # another error has taken it out
            return
        holder.pop(path[-1], None)
        if not holder and path[:-1] and path[:-1] not in self.sources:
            self._remove(path[:-1])


class _SettingPlaces:
    """The places of settings in the document: of each, and of all inside another place."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.own: dict[str, Path] = {}
        self.inside: dict[str, list[Path]] = {}
        for path in paths:
            around = _around(format_path(path))
            self.own[around[0]] = path
            for place in around:
                self.inside.setdefault(place, []).append(path)


def _around(place: str) -> list[str]:
    """Return a place and all around it, the nearest first; the last is the whole document."""
    cuts = [at for at, character in enumerate(place) if character in ".["]
    return [place, *(place[:cut] for cut in reversed(cuts)), ""]
