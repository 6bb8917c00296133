"""What the wheel has beside modules: man pages, completion, units, examples, as Debian's packages.

A hook of hatchling: ``pip``, ``pipx`` and ``uv`` put its files below the directory of the
installation, where man and the shells look if its ``bin`` is in PATH. Pages and completion are
generated from the programs, so a build needs their dependencies; an editable installation has
nothing of all this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parents[1]
_COMPLETIONS = {
    "bash": "share/bash-completion/completions/{}",
    "zsh": "share/zsh/site-functions/_{}",
    "fish": "share/fish/vendor_completions.d/{}.fish",
}


class Hook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds files to the wheel: ``shared_data`` has their places, relative to the prefix."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files below ``build/wheel``, and name them."""
        if version == "editable":
            return
        sys.path.insert(0, str(ROOT))
        shared = build_data["shared_data"]
        for name, text in _generated().items():
            file = ROOT / "build" / "wheel" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
            shared[str(file)] = name
        shared.update({str(file): place for file, place in _copied()})


def _copied() -> Iterator[tuple[Path, str]]:
    """Yield files of the tree with their places: documents, and what systemd and iproute2 read."""
    from deb import contents  # noqa: PLC0415 - the hook is loaded before its path

    for file, place in contents.matching(ROOT, "fared").items():
        if place.startswith("usr/share/doc/"):
            yield file, place.removeprefix("usr/")
        elif file.is_relative_to(ROOT / "systemd"):
            yield file, f"share/fared/{file.relative_to(ROOT)}"


def _generated() -> dict[str, str]:
    """Return the text of each generated file, by its place."""
    from deb import build, contents, manual  # noqa: PLC0415 - as above

    found = {}
    for package, programs in contents.PROGRAMS.items():
        for name, text in manual.pages(package, ROOT / "config" / "fared.yaml").items():
            found[f"share/man/man{name[-1]}/{name}"] = text
        for program, module in programs.items():
            for shell, text in build.completions(program, module).items():
                found[_COMPLETIONS[shell].format(program)] = text
    return found
