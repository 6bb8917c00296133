"""``path SRC DST``: the paths of traffic through the fabric, with the split at each node.

The answer is the fabric's behavior as far as the database describes it: ``walk`` follows it.
"""

from __future__ import annotations

from functools import partial

from fared.core.ids import FAMILY_IPV4, NodeId, Prefix
from fared.management.documents.context import ViewContext, family_name, family_number
from fared.management.documents.each import own_prefixes, perspective
from fared.management.documents.errors import CommandError
from fared.management.documents.path import PathDocument
from fared.management.documents.sliced import Sliced, Work
from fared.management.documents.views.walk import PathEnds, Walker, between
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.model import PathType
from fared.router.instance import ProtocolInstance
from fared.router.protocols import BGP

_INSIDE = (PathType.INTRA_AREA, PathType.LEVEL_1, PathType.LEVEL_2)


@Sliced
def path(
    context: ViewContext, source: str, destination: str, af: str | None = None
) -> Work[PathDocument]:
    """Follow all shortest paths. Raises CommandError if there is none."""
    ends, solver = find_ends(context, source, destination, family_number(af))
    own = partial(own_prefixes, context, ends.protocol)
    walker = Walker(solver, perspective(ends.protocol, solver, ends.prefix, own))
    return (yield from between(walker, ends, context.hostnames))


def find_ends(
    context: ViewContext, source: str, destination: str, family: int | None
) -> tuple[PathEnds, RouteSolver]:
    """Find the ends in the database, and the solver that has it.

    The protocol is the most preferred one that knows both ends. Raises CommandError.
    """
    preferences = context.router.preferences
    reason: CommandError | None = None
    for instance in sorted(context.instances, key=lambda known: preferences[known.name]):
        here = context.narrowed(instance.name)
        start = here.find_node(source, instance)
        if start is None:
            continue
        try:
            prefix, goal = _goal(here, instance, destination, family)
        except CommandError as error:
            reason = reason or error
            continue
        solver = instance.solver_of(prefix)
        assert solver is not None, "the prefix is of a family that the protocol routes"
        return PathEnds(source, destination, instance.name, start, prefix, goal), solver
    raise reason or CommandError("not-found", _unknown(context, source))


def _unknown(context: ViewContext, name: str) -> str:
    """Return that a router is not known; BGP knows none behind the neighbors."""
    where = "in the database"
    if all(instance.name == BGP for instance in context.instances):
        where = "among the neighbors of BGP"
    return f"no router {name!r} {where}"


def _goal(
    context: ViewContext, instance: ProtocolInstance, text: str, family: int | None
) -> tuple[Prefix, int]:
    """Return the prefix and the router that ``text`` names, a prefix, an address, or a router.

    Of a router it is the narrowest prefix of its own. Raises CommandError.
    """
    node = context.find_node(text, instance)
    if node is None:
        try:
            prefix = context.find_route(text)
        except CommandError as error:
            if error.code == "bad-argument":
                message = f"{_unknown(context, text)}, and it is no prefix"
                raise CommandError("not-found", message) from None
            raise
        return prefix, context.routes[prefix].destinations[0]
    for known, solver in sorted(instance.solvers.items(), key=lambda item: item[0] != FAMILY_IPV4):
        if family not in (None, known):
            continue
        for area in solver.areas:
            own = solver.advertised_by(area, NodeId(node))
            inside = [item for item in own if item.path_type in _INSIDE]
            if inside:
                narrowest = max(inside, key=lambda a: (a.prefix.length, -a.metric))
                return narrowest.prefix, node
    what = "prefix" if family is None else f"{family_name(family)} prefix"
    raise CommandError("not-found", f"{text} advertises no {what}")
