"""A saved database of the fabric of ``clos``, computed once."""

from __future__ import annotations

import copy

import pytest

from tests.offline.fabrics import Json, clos, saved


@pytest.fixture(scope="session")
def figure_one():
    return clos()


@pytest.fixture(scope="session")
def _document(figure_one) -> Json:
    return saved(figure_one)


@pytest.fixture
def document(_document) -> Json:
    """A copy of the database of L1, which a test may modify."""
    return copy.deepcopy(_document)
