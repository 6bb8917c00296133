"""Every statement of docs/security.md has a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs/security.md").read_text()
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def _table(section: str) -> list[list[str]]:
    """The cells of the first table of a section, without its head."""
    text = _PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def _functions(file: str) -> set[str]:
    nodes = ast.walk(ast.parse((_ROOT / file).read_text()))
    return {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_test_that_the_page_names_exists():
    named = _NAMED.findall(_PAGE)
    assert len(named) > 70
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (_ROOT / file).exists() or (name and name not in _functions(file))
    ]
    assert missing == []


def test_every_row_of_the_table_of_tests_names_one():
    rows = _table("Tests")
    assert len(rows) > 30
    assert [row[0] for row in rows if len(row) != 2 or not _NAMED.search(row[1])] == []


def test_every_section_has_tests():
    subjects = {row[0].partition(":")[0] for row in _table("Tests")}
    assert subjects == set(_SECTION.findall(_PAGE)) - {"Tests"}


def test_every_limit_has_a_test():
    claims = {row[0].removeprefix("Limits: ") for row in _table("Tests")}
    limits = [row[0] for row in _table("Limits")]
    assert len(limits) > 8
    assert [limit for limit in limits if limit not in claims] == []
