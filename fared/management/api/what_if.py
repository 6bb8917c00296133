"""What would change if a link failed, or had less capacity: the answer of the offline solver.

``cli.what_if`` computes it in a process of its own: the daemon only sends it the database, so
neither its loop nor its memory notices. One question at a time, within a time limit. The process
belongs to the Debian package ``fared-tools``; without that there are no answers.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import aclosing
from functools import partial

from fared.core.ids import NodeId, format_node
from fared.core.units import MIN_CAPACITY
from fared.management.api.encode import encode
from fared.management.api.respond import Json, Responder
from fared.management.documents.context import ViewContext
from fared.management.documents.errors import CommandError
from fared.management.documents.views.fabric_image import FabricImage, image_of, link_rows, sight
from fared.router.instance import ProtocolInstance
from fared.runtime import children

TIME_LIMIT = 45.0
"""Seconds for a question; after two thirds, routers that were not computed are left out."""
MOST_ROOTS = 8
"""Routers whose routes are compared."""
_MOST_ERROR = 500


class FailureQuestions:
    """Answers questions about failures of links, one at a time."""

    def __init__(self, responder: Responder, context: Callable[[], ViewContext]) -> None:
        self._responder = responder
        self._context = context
        self._turn = asyncio.Lock()

    async def answer(self, args: Json) -> bytes:
        """Return ``fared-what-if/1`` (``cli.what_if.WhatIfAnswer``). Raises CommandError.

        ``from`` and ``to``: ids of the ends of a link; ``share``: what is left of its capacity in
        both directions, 0: it fails; ``roots``: ids of routers with commas between, by default the
        ends and leaves.
        """
        if importlib.util.find_spec("fared.extensions.offline") is None:
            raise CommandError("unsupported", "install fared-tools: it computes what would change")
        if self._turn.locked():
            raise CommandError("busy", "another question is being computed; try again")
        async with self._turn:
            context = self._context()
            image = await asyncio.to_thread(image_of, sight(context))
            proto, question = _question(context, image, args)
            command = children.python("fared.extensions.offline.cli.what_if")
            try:
                found, errors, status = await children.ask(
                    command, TIME_LIMIT, partial(self._ask, question, proto)
                )
            except TimeoutError:
                raise CommandError("busy", f"no answer within {TIME_LIMIT:g} s") from None
            if status:
                text = errors.strip().rpartition("\n")[2]
                raise CommandError("bad-argument", text[:_MOST_ERROR] or "no answer")
            return found

    async def _ask(self, question: Json, proto: str, pipe: asyncio.StreamWriter) -> None:
        """Send the question and the database, slice by slice."""
        pipe.write(encode(question) + b"\n")
        async with aclosing(self._responder.stream("show lsdb", {"proto": proto})) as slices:
            async for text in slices:
                pipe.write(text)
                await pipe.drain()


def _question(context: ViewContext, image: FabricImage, args: Json) -> tuple[str, Json]:
    """Return the protocol and ``cli.what_if.Question``."""
    ends = _end(image, args, "from"), _end(image, args, "to")
    if ends[1] not in image.vertices[ends[0]].ends:
        raise CommandError("not-found", f"no link from {args['from']} to {args['to']}")
    share = _share(args)
    solver = context.router.settings.solver
    instance, (tail, head) = _instance(context, image, ends)
    rates = ((a, b, _rate(image, a, b) * share) for a, b in (ends, ends[::-1]))
    names = dict(zip(ends, (tail, head), strict=True))
    failed = share == 0.0
    return instance.name, {
        "fail_links": [f"{tail},{head}"] if failed else [],
        "bandwidths": [] if failed else [f"{names[a]},{names[b]}={r:.0f}" for a, b, r in rates],
        "roots": list(_roots(image, instance, ends, args)),
        "family": next(iter(instance.solvers)),
        "weights": solver.mode.value,
        "flows": solver.flows,
        "max_paths": solver.max_paths,
        "delay_margin": solver.delay_margin,
        "delay_bound": solver.delay_bound,
        "unknown_delay": solver.unknown_delay,
        "max_weight": solver.max_weight,
        "max_group_size": solver.max_group_size,
        "max_groups": context.router.settings.fib.max_groups,
        "seconds": TIME_LIMIT * 2 / 3,
    }


def _end(image: FabricImage, args: Json, name: str) -> NodeId:
    text = args.get(name)
    for node in image.first:
        if text == format_node(node):
            return image.first[node]
    raise CommandError("bad-argument", f"{name} must be the id of a router")


def _share(args: Json) -> float:
    try:
        share = float(args.get("share", 0.0))
    except (TypeError, ValueError):
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise CommandError("bad-argument", "share must be a number from 0 to 1")
    return share


def _rate(image: FabricImage, tail: NodeId, head: NodeId) -> float:
    """Return the capacity of a link in bits/s, of each of parallel links."""
    row = link_rows(image, image.vertices[tail], {head}).get(head)
    if row is None or not row.capacity >= MIN_CAPACITY:
        raise CommandError("not-found", "the capacity of the link is not known")
    return row.capacity / row.links * 8


def _instance(
    context: ViewContext, image: FabricImage, ends: tuple[NodeId, NodeId]
) -> tuple[ProtocolInstance, list[str]]:
    """Return the protocol that has the link, and the ids of both ends in it."""
    for instance in context.instances:
        ids = _ids(image, instance)
        if all(end in ids for end in ends):
            return instance, [ids[end] for end in ends]
    raise CommandError("not-found", "no protocol has both ends of the link")


def _ids(image: FabricImage, instance: ProtocolInstance) -> dict[NodeId, str]:
    """Return the ids of routers in a protocol, by vertex."""
    solver = instance.solver
    return {
        image.first[node]: format_node(node)
        for area in solver.areas
        for node in solver.ted(area).blocks
        if node in image.first
    }


def _roots(
    image: FabricImage, instance: ProtocolInstance, ends: tuple[NodeId, NodeId], args: Json
) -> Iterator[str]:
    """Yield the routers to compare: those that are asked for, or the ends and leaves."""
    ids = _ids(image, instance)
    asked = args.get("roots")
    if asked:
        chosen = [_end(image, {"roots": text}, "roots") for text in str(asked).split(",")]
    else:
        places = image.shape.places
        leaves = [n for n in sorted(image.vertices) if n not in places or places[n].tier == 0]
        others = [end for end in ends if end not in leaves]
        leaves.sort(key=lambda node: (node not in ends, node != image.here))
        chosen = [*leaves[: MOST_ROOTS - len(others)], *others]
    yield from [ids[node] for node in chosen if node in ids][:MOST_ROOTS]
