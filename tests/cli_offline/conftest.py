"""A saved database of the seed's Figure 1, made once."""

from __future__ import annotations

import copy

import pytest

from tests.cli_offline.fabrics import Json, clos, saved


@pytest.fixture(scope="session")
def figure_one():
    return clos()


@pytest.fixture(scope="session")
def _document(figure_one) -> Json:
    return saved(figure_one)


@pytest.fixture
def document(_document) -> Json:
    """L1's database; a copy, to be spoilt at will."""
    return copy.deepcopy(_document)
