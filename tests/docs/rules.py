"""Writes ``docs/rules.md``: for each section of a standard the code that cites it, and its tests.

Code cites sections in comments and docstrings: ``# RFC 2328 §13 (1): the LS checksum``. Tests have
the marker ``rfc``: ``@pytest.mark.rfc("RFC 2328 §13 (1)")``. The page names functions without
lines, so that it changes only with rules. ``make rules`` writes it.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "rules.md"
HEAD = """\
# Rules

For each section of a standard: the functions of `fared/` that cite it, and the tests of its rules.
`pytest -m rfc` runs these tests. `make rules` generates this page, from comments and docstrings of
the code, and from the marker `rfc` of the tests.
"""
# Sections that, without a document, are those of the standard of a package: others have them not.
_BASES = [
    (package, document, re.compile(sections))
    for package, document, sections in (
        ("fared/protocols/ospf/", "RFC 2328", r"[89]\.?|1\d\.?|[A-G]"),
        ("fared/protocols/bgp/", "RFC 4271", r"[4-9]\b|10$"),
        ("fared/protocols/i", "ISO 10589", r"7\.[23]\.\d|8\.[24]|9\.\d|10\.1$"),
        ("fared/", "RFC 2328", r"10\.\d|1[1-6]\b"),
    )
]
_TOKEN = re.compile(
    r"(?P<document>RFC \d{3,5}|ISO(?:/IEC)?(?: 10589)?(?::2002)?(?=[\s:,)]))"
    r"|§(?P<section>[\dA-H][\d.]*\d|[\dA-H])(?P<steps>(?:\s?\(\w{1,2}\))*)"
)
Where = dict[str, set[str]]
"""Names of functions by file; "" stands for the whole module."""


class Rule(NamedTuple):
    """A section of a document: ``("RFC 2328", "13 (1)")``; "" stands for all of it."""

    document: str
    section: str

    @property
    def order(self) -> tuple[bool, int, list[tuple[int, int, str]]]:
        """RFCs by number, sections as in a table of contents, appendices last."""
        kind, number = self.document.split(" ")
        parts = re.findall(r"[A-Z]|\d+|\(\w+\)", self.section)
        return kind == "ISO", int(number), [_part(part) for part in parts]


def _part(part: str) -> tuple[int, int, str]:
    """Steps, as (5), come before subsections, as .1."""
    if part.isdigit():
        return 1, int(part), ""
    step = part.strip("()")
    return (2, 0, part) if step == part else (0, int(step) if step.isdigit() else 0, step)


class Reader:
    """Reads the citations of one file, in order.

    A ``§`` alone belongs to the document that was cited last with a section, unless only the
    standard of the package has such a section.
    """

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._document: str | None = None

    def rules(self, text: str) -> Iterator[Rule]:
        """The sections that a text cites."""
        named = False
        for found in _TOKEN.finditer(text):
            if found["document"]:
                named = text[found.end() :].lstrip(" ,").startswith("§")
                if named or self._document is None:
                    self._document = self._name(found["document"])
                continue
            of = self._document if named else self._base(found["section"]) or self._document
            named = False
            if of is not None:
                steps = "".join(re.findall(r"\(\w+\)", found["steps"]))
                yield Rule(of, f"{found['section']} {steps}".rstrip())

    def _name(self, document: str) -> str:
        return document if document.startswith("RFC") else "ISO 10589"

    def _base(self, section: str) -> str | None:
        for package, document, sections in _BASES:
            if self._path.startswith(package) and sections.match(section):
                return document
        return None


def rule(text: str) -> Rule:
    """The rule that a marker names: a section, or a whole document."""
    return next(Reader().rules(text), None) or Rule(text, "")


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[range, str]]:
    """The lines and dotted names of all functions and classes."""
    for node in ast.iter_child_nodes(tree):
        name = prefix
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}.{node.name}".lstrip(".")
            yield range(node.lineno, (node.end_lineno or node.lineno) + 1), name
        yield from _functions(node, name)


def _texts(source: str) -> Iterator[tuple[int, str]]:
    """Comments and docstrings, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        docstring = token.type == tokenize.STRING and token.string.startswith('"""')
        if docstring or token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def rules_of_code() -> dict[Rule, Where]:
    """Which functions cite which rule."""
    rules: dict[Rule, Where] = defaultdict(lambda: defaultdict(set))
    for path in sorted((ROOT / "fared").rglob("*.py")):
        source, name = path.read_text("utf-8"), str(path.relative_to(ROOT))
        if "§" in source:
            functions, reader = list(_functions(ast.parse(source))), Reader(name)
            for line, text in _texts(source):
                inside = [function for lines, function in functions if line in lines]
                for one in reader.rules(text):
                    rules[one][name].add(max(inside, key=len, default=""))
    return rules


def _marks(nodes: Iterable[ast.expr]) -> Iterator[Rule]:
    """The rules that markers name."""
    for node in nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rfc":
            yield from (rule(ast.literal_eval(argument)) for argument in node.args)


def rules_of_tests() -> dict[Rule, Where]:
    """Which tests have which rule."""
    rules: dict[Rule, Where] = defaultdict(lambda: defaultdict(set))
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source, name = path.read_text("utf-8"), str(path.relative_to(ROOT))
        for node in ast.parse(source).body if "mark.rfc(" in source else ():
            if isinstance(node, ast.FunctionDef):
                for one in _marks(node.decorator_list):
                    rules[one][name].add(node.name)
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
                value = node.value
                for one in _marks(value.elts if isinstance(value, ast.List) else [value]):
                    rules[one][name].add("")
    return rules


def page() -> str:
    """The whole page."""
    code, tests = rules_of_code(), rules_of_tests()
    lines = [HEAD]
    rules = sorted({*code, *tests}, key=lambda one: (one.order, one.section))
    for document, sections in groupby(rules, key=lambda one: one.document):
        lines += [f"## {document}\n", "| section | code | tests |", "|---|---|---|"]
        for one in sections:
            title = f"§{one.section}" if one.section else "all"
            lines.append(f"| {title} | {_cell(code.get(one))} | {_cell(tests.get(one))} |")
        lines.append("")
    return "\n".join(lines)


def _cell(where: Where | None) -> str:
    """Each file with its functions, below ``fared/`` or ``tests/``."""
    cells = []
    for file, names in sorted((where or {}).items()):
        functions = ", ".join(f"`{name}`" for name in sorted(names) if name)
        cells.append(f"{file.partition('/')[2]}{': ' * bool(functions)}{functions}")
    return "<br>".join(cells)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
