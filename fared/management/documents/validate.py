"""``validate``: whether database, graph, routes and kernel agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents.cells import Columns, judged
from fared.management.documents.declare import Answer, Document
from fared.management.documents.facts import Facts

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class SelfCheck(Facts):
    """One self-check: the comparison (``name``), and its result (``detail``)."""

    name: str
    ok: bool
    detail: str


class Validate(Answer, tag="fared-validate/1"):
    """``validate``: database, graph, routes and kernel agree."""

    ok: bool
    checks: list[SelfCheck]

    def show(self, paper: Paper) -> None:
        """Print the checks."""
        paper.table(self.checks, _CHECKS)


_CHECKS: Columns = {
    "": lambda c: judged("PASS" if c.ok else "FAIL", good=c.ok),
    "Check": "name",
    "~Found": "detail",
}
DOCUMENT = Document(
    Validate,
    "validate:validate",
    "Check that database, graph, routes and kernel agree. The exit code is 1 if not.",
)
