"""Who types ``docs/first-fabric.md`` sees what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.transcript import DOCS, typed, words


@pytest.mark.netns
@pytest.mark.slow
def test_the_first_fabric_can_be_typed_to_the_letter(tmp_path: Path):
    """All commands succeed, and print the words of the page."""
    blocks = list(typed((DOCS / "first-fabric.md").read_text(), tmp_path, patience=30))
    assert len(blocks) > 12
    for block, told in blocks:
        assert words(told) == words(block), told
