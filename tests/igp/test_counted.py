"""The lists of what can be counted are complete, so that every metric begins at 0."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.protocols.igp.counted import MALFORMED
from fared.protocols.isis import counted as isis
from fared.protocols.ospf import counted as ospf

PROTOCOLS = Path(__file__).parents[2] / "fared" / "protocols"
REJECTS = {"reject", "_reject", "_reject_envelope", "Refusal"}
CODE = re.compile(r"[a-z]+(-[a-z0-9]+)*")
COUNTABLE = {"ospf": ospf.COUNTABLE, "isis": isis.COUNTABLE}
SILENT = {"not-designated", "own-packet"}
"""Not for this router by a rule of the protocol: no errors."""


def literals(node: ast.AST) -> Iterator[str]:
    """The strings that a node is, or selects from."""
    match node:
        case ast.Constant(str(text)):
            yield text
        case ast.IfExp(_, chosen, other):
            yield from (*literals(chosen), *literals(other))
        case ast.Tuple(elements):
            yield from (text for element in elements for text in literals(element))


def reasons(protocol: str) -> Iterator[str]:
    """The codes that are counted, or that checks return."""
    for path in (PROTOCOLS / protocol).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(ast.Name(name) | ast.Attribute(_, name), arguments):
                    if name in REJECTS:
                        yield from (text for one in arguments for text in literals(one))
                case ast.Subscript(ast.Attribute(_, "errors"), code):
                    yield from literals(code)
                case ast.Return(ast.AST() as value) if path.stem == "checks":
                    yield from literals(value)


@pytest.mark.parametrize("protocol", COUNTABLE)
def test_every_reason_of_an_error_is_known_in_advance(protocol):
    found = {code for code in reasons(protocol) if CODE.fullmatch(code)} - SILENT
    assert len(found) > 10
    assert found - set(COUNTABLE[protocol].errors) == set()


@pytest.mark.parametrize("protocol", COUNTABLE)
def test_no_reason_is_listed_twice(protocol):
    errors = COUNTABLE[protocol].errors
    assert len(set(errors)) == len(errors)
    assert set(MALFORMED) < set(errors)


def test_changes_of_state_are_those_of_the_tables():
    assert ("Exchange", "Full") in ospf.COUNTABLE.transitions
    assert ("Full", "Down") in ospf.COUNTABLE.transitions
    assert ("Down", "Full") not in ospf.COUNTABLE.transitions
    assert len(isis.COUNTABLE.transitions) == 6
