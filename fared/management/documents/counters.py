"""``show counters``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents.cells import dim
from fared.management.documents.declare import Answer, Document
from fared.management.documents.facts import Facts, UnixTime

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.management.documents.paper import Paper


class Counter(Facts):
    """``group`` is the kind of events counted (packets, errors, lsas, spf, fib...).

    ``proto`` None: of no protocol.
    """

    proto: str | None
    group: str
    name: str
    value: int


class Counters(Answer, tag="fared-counters/1"):
    """``show counters``, since start, or since ``cleared_at``; argument ``proto`` optional."""

    counters: list[Counter]
    cleared_at: UnixTime | None

    def show(self, paper: Paper) -> None:
        """Print the counters, the name of each group once."""
        if self.cleared_at is not None:
            paper.line(dim(f"cleared {paper.ago(self.cleared_at)} ago"))
        before = [None, *(counter.group for counter in self.counters)]
        rows = (
            ("" if counter.group == group else counter.group, counter.name, str(counter.value))
            for group, counter in zip(before, self.counters, strict=False)
        )
        paper.grid(("Group", "~Counter", ">Count"), rows)


def counters(context: ViewContext) -> Counters:
    """``show counters``."""
    cleared = context.runtime.cleared
    at, before = (None, {}) if cleared is None else cleared
    return Counters(
        cleared_at=at,
        counters=[
            Counter(
                proto=proto or None,
                group=group,
                name=name,
                value=value - before.get(proto, {}).get(group, {}).get(name, 0),
            )
            for proto, groups in context.counters().items()
            if context.proto in (None, proto)
            for group, counts in groups.items()
            for name, value in sorted(counts.items())
        ],
    )


DOCUMENT = Document(
    Counters, counters, "Counters since start, or since `clear counters`.", narrowed=True
)
