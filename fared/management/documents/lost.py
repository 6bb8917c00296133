"""Links that are not there and should be: in ``show fabric``, ``show topology``, on the page.

fared knows them from what it has seen (a day back, over restarts), or from their siblings.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from fared.core.link_text import link
from fared.management.documents import human
from fared.management.documents.cells import Cell, count, red
from fared.management.documents.facts import Facts, UnixTime

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_FEW = 3
"""Links of one router that are shown one by one, although it has no other."""


class MissingLink(Facts):
    """A link between two routers, by their ids, that is not there.

    ``links`` of the pair are lost since ``since``; both None where fared has never seen them.
    ``have`` of the ``siblings`` of one end (``sibling_of``) have a link to the other; None where it
    has no place in a Clos. ``alone``: the end that has no link left, None if both have some.
    """

    from_: str = msgspec.field(name="from")
    to: str
    from_hostname: str | None
    to_hostname: str | None
    links: int | None
    since: UnixTime | None
    have: int | None
    siblings: int | None
    sibling_of: str | None
    alone: str | None

    @property
    def name(self) -> str:
        """``S3-L5``."""
        return link(self.end(self.from_), self.end(self.to))

    def end(self, router: str) -> str:
        """Return the name of an end."""
        hostname = self.from_hostname if router == self.from_ else self.to_hostname
        return human.router(router, hostname)


def show_lost(paper: Paper, missing: Sequence[MissingLink]) -> None:
    """Print what is missing; a router without any link in one line."""
    if not missing:
        return
    rows: list[tuple[Cell, ...]] = []
    for alone, group in groupby(sorted(missing, key=_order), key=lambda each: each.alone):
        links = list(group)
        if alone is not None and len(links) >= _FEW:
            rows.append(_router(paper, alone, links))
        else:
            rows += [_link(paper, each) for each in links]
    paper.line()
    paper.grid(("Missing", ">For", "~Why it is missed"), rows)


def _order(missing: MissingLink) -> tuple[bool, str, str, str]:
    return missing.alone is None, missing.alone or "", missing.from_, missing.to


def _router(paper: Paper, alone: str, links: list[MissingLink]) -> tuple[Cell, ...]:
    since = [each.since for each in links if each.since is not None]
    age = paper.ago(max(since)) if since else human.DASH
    return red(links[0].end(alone)), age, f"all of its {count(len(links), 'link')} are gone"


def _link(paper: Paper, missing: MissingLink) -> tuple[Cell, ...]:
    age = human.DASH if missing.since is None else paper.ago(missing.since)
    return red(missing.name), age, why(missing)


def why(missing: MissingLink) -> str:
    """Return why a link is missed: it was there, or its siblings are."""
    reasons = []
    if missing.links is not None:
        several = missing.links > 1
        reasons.append(f"{missing.links} links were there" if several else "it was there")
    if missing.have is not None and missing.siblings is not None and missing.sibling_of is not None:
        who = missing.end(missing.sibling_of)
        reasons.append(f"{_part(missing.have, missing.siblings)} of {who} {_verb(missing.have)} it")
    return "; ".join(reasons)


def _part(have: int, siblings: int) -> str:
    if siblings == 1:
        return "the sibling"
    return f"all {siblings} siblings" if have == siblings else f"{have} of the {siblings} siblings"


def _verb(have: int) -> str:
    return "has" if have == 1 else "have"
