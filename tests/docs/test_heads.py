"""The head of a package, the docstring of its ``__init__``, names all modules of the package.

Code words of a head in small letters (``ted``, ``ted/``, ``ospf.neighbor``) are names of modules
and packages: of this package, of one above, or below ``fared``. What else is a code word has
another form: ``NodeBlock``, ``fared-bfd``, ``"time"``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PACKAGES = sorted(init.parent for init in (_ROOT / "fared").rglob("__init__.py"))
_WORD = r"[a-z][a-z0-9_]*"
_NAME = re.compile(rf"``({_WORD}(?:[./]{_WORD})*)/?``")
_BY_NAME = {"cli", "kinds", "lab", "views"}
"""Packages whose modules are found by what they are called: commands, views, tools."""


def _name(package: Path) -> str:
    return str(package.relative_to(_ROOT))


def _named(package: Path) -> list[str]:
    """The modules that the head of a package names, with dots."""
    head = ast.get_docstring(ast.parse((package / "__init__.py").read_text()))
    assert head, "a package has a head"
    return [name.replace("/", ".") for name in _NAME.findall(head)]


def _modules(package: Path) -> set[str]:
    packages = {init.parent.name for init in package.glob("*/__init__.py")}
    return packages | {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}


def _is_document(module: Path) -> bool:
    """Whether it is found by its name in the registry of documents."""
    return module.is_file() and "\nDOCUMENT = " in module.read_text()


def _is_module(path: Path) -> bool:
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _places(package: Path) -> Iterator[Path]:
    """Where modules may be that a head names: the package, those above, those of ``fared``."""
    yield from (package, *package.parents[: len(package.relative_to(_ROOT).parts)])
    yield from (init.parent for init in (_ROOT / "fared").glob("*/__init__.py"))


@pytest.mark.parametrize("package", _PACKAGES, ids=_name)
def test_a_head_names_all_modules_of_its_package(package: Path) -> None:
    modules = {name for name in _modules(package) if not _is_document(package / f"{name}.py")}
    named = {name.partition(".")[0] for name in _named(package)} & modules
    wanted = set() if package.name in _BY_NAME else modules
    assert named == wanted, f"differ: {sorted(wanted ^ named)}"


@pytest.mark.parametrize("package", _PACKAGES, ids=_name)
def test_a_head_names_only_modules_that_exist(package: Path) -> None:
    missing = [
        name
        for name in _named(package)
        if not any(_is_module(place.joinpath(*name.split("."))) for place in _places(package))
    ]
    assert not missing
