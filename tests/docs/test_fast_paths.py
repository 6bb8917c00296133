"""``docs/fast-paths.md`` is the ledger of ``bench/fast_paths``, whose rows name what exists."""

from __future__ import annotations

import ast
import inspect
import pkgutil

import pytest

from bench.fast_paths.fast_paths import LEAST, LEDGER, FastPath
from tests.docs.fast_paths import PAGE, ROOT, page, recorded


def test_the_page_is_current():
    assert PAGE.read_text("utf-8") == page(), "make fast-paths writes it"


def test_names_are_unique():
    assert len({path.name for path in LEDGER}) == len(LEDGER)


def test_each_gains_enough():
    gains = recorded()["gains"]
    assert gains.keys() == {path.name for path in LEDGER}
    assert {name: gain for name, gain in gains.items() if gain < LEAST} == {}


@pytest.mark.parametrize("path", LEDGER, ids=lambda path: path.name)
def test_a_row_names_code_tests_and_work_that_exist(path: FastPath):
    fast, _ = (pkgutil.resolve_name(f"fared.{name}") for name in (path.fast, path.plain))
    file, _, test = path.test.partition("::")
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert test in {node.name for node in tree.body if isinstance(node, functions)}
    for name in path.without:
        owner, _, attribute = name.rpartition(".")
        held = pkgutil.resolve_name(owner)
        assert hasattr(held, attribute) or f"self.{attribute}" in inspect.getsource(held), name
    assert path.work.__doc__
    # the code says what it is beside, by what test, and in which row
    module = inspect.getmodule(fast)
    assert module is not None
    source = " ".join(inspect.getsource(module).split())
    assert f"row ``{path.name}``" in source
    assert file in source
