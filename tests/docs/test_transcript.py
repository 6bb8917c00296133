"""Who types ``docs/first-fabric.md`` sees what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.transcript import DOCS, typed


def words(block: str) -> list[str]:
    """What a block says, without figures, and without which adjacency was the last to form."""
    return re.findall(r"[A-Za-z]{3,}", re.sub("last changed.*", "", block))


@pytest.mark.netns
@pytest.mark.slow
def test_the_first_fabric_can_be_typed_to_the_letter(tmp_path: Path):
    """All commands succeed, and print the words of the page."""
    blocks = list(typed((DOCS / "first-fabric.md").read_text(), tmp_path))
    assert len(blocks) > 12
    assert [(block[0], told) for block, told in blocks if words(block[0]) != words(told)] == []
