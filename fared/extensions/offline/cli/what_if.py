"""The process that a daemon starts to answer what a failure would change.

It is ``fared-cli spf --diff`` for several roots, within a time. Standard input has the question, a
line of JSON, and then the database as ``show lsdb --json`` prints it; the answer goes to standard
output. ``fared.management.api.what_if`` asks.
"""

from __future__ import annotations

import sys
import time
from functools import partial

import click
import msgspec

from fared.core.ids import NodeId, format_node
from fared.extensions.offline.changes import Changes
from fared.extensions.offline.cli.arguments import Names, WhatIf, read_changes
from fared.extensions.offline.difference import difference
from fared.extensions.offline.documents import OfflineRoutes, RouteDifference
from fared.extensions.offline.file import read_database
from fared.extensions.offline.solve import routes_document
from fared.extensions.offline.world import FileError
from fared.management.documents.declare import Answer
from fared.management.documents.facts import Facts, Seconds
from fared.paths.rib.settings import SolverSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.paths.weights.quantise import DEFAULT_MAX_WEIGHT
from fared.runtime.child import end_with_parent, give_way

MOST_ROUTES = 40
"""Routes that are sent for each root: a leaf of a large fabric may have a thousand that change, of
64 next hops each."""


class RootDifference(Facts):
    """The routes of a router that change, as ``fared-cli spf --root ROOT --diff`` prints them.

    ``changed`` counts them; ``routes`` has the first ``MOST_ROUTES``.
    """

    root: str
    hostname: str | None
    changed: int
    routes: list[RouteDifference]
    unchanged: int


class WhatIfAnswer(Answer, tag="fared-what-if/1"):
    """``/api/v1/what-if``: computed for some routers from the present database.

    ``changes`` are the options of ``fared-cli spf`` that ask the same. ``omitted``: routers for
    which there was no time.
    """

    changes: list[str]
    roots: list[RootDifference]
    omitted: list[str]
    seconds: Seconds


class Question(msgspec.Struct, frozen=True):
    """Options of ``fared-cli spf``, several roots by id, and seconds after which to stop."""

    fail_links: tuple[str, ...]
    bandwidths: tuple[str, ...]
    roots: tuple[str, ...]
    family: int
    weights: str
    flows: int | None
    max_paths: int
    seconds: float
    delay_margin: float | None = None
    delay_bound: float | None = None
    unknown_delay: float = 0.0
    max_weight: int = DEFAULT_MAX_WEIGHT
    max_group_size: int | None = None
    max_groups: int | None = None


def main() -> int:
    """Answer one question; the exit code is 1, with a line on stderr, if that is impossible."""
    began = time.monotonic()
    end_with_parent()
    give_way()
    line, _, text = sys.stdin.buffer.read().partition(b"\n")
    try:
        found = answer(msgspec.json.decode(line, type=Question), text, began)
    except click.ClickException as error:
        sys.stderr.write(error.format_message())
        return 1
    except FileError as error:
        sys.stderr.write(str(error))
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(found))
    return 0


def answer(question: Question, text: bytes, began: float) -> WhatIfAnswer:
    """Return ``fared-what-if/1``; ``began`` is on the monotonic clock.

    Raises FileError, or click.ClickException where the database lacks what is named.
    """
    database = read_database(text)
    before = database.world(None, question.family, Changes())
    names = Names(before)
    given = WhatIf(question.fail_links, (), (), question.bandwidths, ())
    after = database.world(None, question.family, read_changes(names, given))
    mode = WeightMode(question.weights)
    settings = SolverSettings(
        max_paths=question.max_paths,
        mode=mode,
        flows=question.flows,
        delay_margin=question.delay_margin,
        delay_bound=question.delay_bound,
        unknown_delay=question.unknown_delay,
        max_weight=question.max_weight,
        max_group_size=question.max_group_size,
    )
    compute = partial(routes_document, settings=settings, max_groups=question.max_groups)
    roots: list[RootDifference] = []
    omitted: list[str] = []
    for root in question.roots:
        if time.monotonic() - began > question.seconds:
            omitted.append(root)
        else:
            node = names.node(root, "roots")
            former, found = (compute(world, node) for world in (before, after))
            roots.append(_changed(former, found, node, before.hostnames.get(node), given))
    seconds = round(time.monotonic() - began, 3)
    return WhatIfAnswer(changes=given.described(), roots=roots, omitted=omitted, seconds=seconds)


def _changed(
    before: OfflineRoutes, after: OfflineRoutes, root: NodeId, hostname: str | None, given: WhatIf
) -> RootDifference:
    found = difference(before, after, given.described())
    return RootDifference(
        root=format_node(root),
        hostname=hostname,
        changed=len(found.routes),
        routes=found.routes[:MOST_ROUTES],
        unchanged=found.unchanged,
    )


if __name__ == "__main__":
    sys.exit(main())
