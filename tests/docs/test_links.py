"""The targets of the documentation exist: files, sections, modules, classes and quoted code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.run import SECTIONS

_ROOT = Path(__file__).parents[2]
_FOLDERS = ("", "docs/", "docs/seeds/", "containerlab/")
_PAGES = sorted(page for folder in _FOLDERS for page in _ROOT.glob(f"{folder}*.md"))
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CLASS = re.compile(r"`([a-z]+)\.([A-Z]\w+)`")
_QUOTE = re.compile(r"`([\w/]+\.py)`:\n\n *```python\n(.*?) *```", re.DOTALL)
_MODULE = re.compile(r"`((?:fared|tests|bench|config|systemd|containerlab)/[\w./-]+)`")


def _anchors(page: Path) -> set[str]:
    """The sections of a page as GitHub names them."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", page.read_text())):
        if link.startswith(("http:", "https:")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    missing = [name for name in _MODULE.findall(page.read_text()) if not (_ROOT / name).exists()]
    assert page.name == "CHANGELOG.md" or not missing, missing


def test_every_class_that_the_terms_name_is_in_its_package() -> None:
    named = _CLASS.findall((_ROOT / "docs/terms.md").read_text())
    assert len(named) > 50
    places: dict[str, list[Path]] = {}  # two protocols may each have a package of one name
    for init in (_ROOT / "fared").rglob("__init__.py"):
        places.setdefault(init.parent.name, []).append(init.parent)
    sources = {
        package: "".join(path.read_text() for one in places[package] for path in one.rglob("*.py"))
        for package, _ in named
    }
    missing = [
        (package, name)
        for package, name in named
        if not re.search(rf"class {name}\b", sources[package])
    ]
    assert not missing


def test_every_term_of_the_field_names_its_source() -> None:
    text = (_ROOT / "docs/terms.md").read_text()
    table = text.partition("## Terms of the field")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) > 40
    assert [row[0] for row in rows if len(row) != 4 or not row[2].strip()] == []


def test_a_class_name_stands_for_one_class_or_is_listed_as_shared() -> None:
    places: dict[str, set[str]] = {}
    for path in (_ROOT / "fared").rglob("*.py"):
        for name in re.findall(r"^class _?(\w+)", path.read_text(), re.MULTILINE):
            places.setdefault(name, set()).add(str(path.relative_to(_ROOT)))
    _, heading, shared = (_ROOT / "docs/terms.md").read_text().partition("## Shared class names")
    assert heading
    listed = set(re.findall(r"`([A-Z]\w+)`", shared))
    assert {name for name, found in places.items() if len(found) > 1} == listed
    assert max(map(len, places.values())) == 2


def test_code_that_a_page_quotes_stands_in_the_file_it_names() -> None:
    quotes = [
        (name, line.strip())
        for page in _PAGES
        for name, code in _QUOTE.findall(page.read_text())
        for line in code.splitlines()
    ]
    assert quotes
    missing = [(name, line) for name, line in quotes if line not in (_ROOT / name).read_text()]
    assert not missing


def _packages(folder: Path, above: str = "") -> Iterator[str]:
    """The packages of a folder; those of a package that only holds others, in its place."""
    for init in folder.glob("*/__init__.py"):
        package, name = init.parent, above + init.parent.name
        alone = len(list(package.glob("*.py"))) == 1
        yield from _packages(package, f"{name}/") if alone and not above else (name,)


def test_developing_lists_every_package_and_every_benchmark() -> None:
    text = (_ROOT / "docs/developing.md").read_text()
    packages = text.partition("## The packages")[2].partition("\n## ")[0]
    rows = re.findall(r"^\|([^|]+)\|", packages, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z/]+)`", row)}
    assert named == set(_packages(_ROOT / "fared"))
    table = text.partition("## Benchmarks")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == SECTIONS.keys()
