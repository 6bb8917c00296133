"""``fared-cli spf``: the daemon's computation on a saved database.

No daemon, root or network is needed.
"""

from __future__ import annotations

import click

from fared.core.ids import NodeId, dotted, format_node, parse_area
from fared.extensions.offline.changes import Changes
from fared.extensions.offline.cli.arguments import Names, WhatIf, read_changes, solver_settings
from fared.extensions.offline.cli.options import LSDB, change_options, solver_options
from fared.extensions.offline.cli.printing import print_answer
from fared.extensions.offline.cli.source import DATABASES, load_database
from fared.extensions.offline.difference import difference
from fared.extensions.offline.documents import OfflineRoutes, RoutesAll, RoutesDiff
from fared.extensions.offline.solve import bier_document, explain_document, routes_document
from fared.extensions.offline.world import SavedDatabase, World
from fared.management.cli.session import Failure
from fared.management.documents.declare import Answer
from fared.management.documents.errors import CommandError
from fared.management.documents.explain import Explain
from fared.paths.rib.settings import SolverSettings

_PIPE_WIDTH = 160

_EPILOG = """
Routers are named by router id, system id or hostname. A-B stands for all parallel links between two
routers, and 'A > B', or A,B, for that direction of them, to which --set-cost and --set-bandwidth
then apply. A failed link takes the subnet of the link with it. If two routers are neighbors on a
LAN, A-B is A's link to the LAN: when it fails, A loses all neighbors on the LAN, and they keep each
other. A-net:ADDRESS is the same link, with the address of the LAN's designated router, and
net:ADDRESS as N is the whole LAN; with IS-IS that is the pseudonode, 0102.5500.0001.04. Next hops
are those of the file's interfaces if the root is the router that the file was saved on, else they
are named by neighbor.

\b
The link between leaf1 and spine1 fails, as seen from every router:
  fared-cli spf --lsdb db.json --all --diff --fail-link leaf1-spine1
spine1 can send only a quarter of 400G to leaf2:
  fared-cli spf --lsdb db.json --diff --set-bandwidth 'spine1 > leaf2=100G'

Exit codes: 0 ok, 1 bad file or no such route, 2 usage.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--lsdb",
    "source",
    metavar="FILE|-",
    required=True,
    help=LSDB,
)
@click.option("--root", metavar="ID", help="Compute as this router (default: the file's).")
@click.option("--all", "every", is_flag=True, help="Compute as every router.")
@click.option("--area", metavar="A", help="Use one area only (OSPF).")
@click.option("--level", type=click.IntRange(1, 2), help="Use one level only (IS-IS).")
@click.option(
    "--af",
    type=click.Choice(["ipv4", "ipv6"]),
    default="ipv4",
    show_default=True,
    help="Address family of the routes.",
)
@solver_options
@click.option(
    "--max-groups",
    type=click.IntRange(1, 65535),
    help="As fib: max-groups, for the routes computed here alone (default: any).",
)
@change_options
@click.option("--diff", is_flag=True, help="Show only differences caused by the changes.")
@click.option("--explain", "prefix", metavar="PREFIX", help="Explain this route.")
@click.option(
    "--bier", "sub_domain", type=click.IntRange(0, 255), help="Show the BIFTs of a BIER sub-domain."
)
@click.option("--json", "as_json", is_flag=True, help="Print the JSON document.")
def spf(
    *,
    source: str,
    root: str | None,
    area: str | None,
    level: int | None,
    af: str,
    max_paths: int,
    weights: str,
    flows: int | None,
    max_weight: int,
    max_group_size: int | None,
    max_groups: int | None,
    delay_margin: str | None,
    delay_bound: str | None,
    unknown_delay: str | None,
    fail_links: tuple[str, ...],
    fail_nodes: tuple[str, ...],
    costs: tuple[str, ...],
    bandwidths: tuple[str, ...],
    overloads: tuple[str, ...],
    prefix: str | None,
    every: bool,
    diff: bool,
    sub_domain: int | None,
    as_json: bool,
) -> None:
    """Compute the routes of a saved link-state database, as the daemon would, with changes.

    Without options these are the routes of the router that the database was saved on.
    """
    _check_usage(root, prefix, sub_domain, every=every, diff=diff)
    given = WhatIf(fail_links, fail_nodes, costs, bandwidths, overloads)
    if diff and not given.described():
        raise click.UsageError(
            "--diff requires a change: --fail-link, --set-bandwidth, --overload..."
        )
    database = load_database(source)
    document = _compute(
        database,
        given,
        root=root,
        part=_part(database, area, level),
        family=_family(database, af),
        settings=solver_settings(
            max_paths=max_paths,
            weights=weights,
            flows=flows,
            max_weight=max_weight,
            max_group_size=max_group_size,
            delay_margin=delay_margin,
            delay_bound=delay_bound,
            unknown_delay=unknown_delay,
        ),
        max_groups=max_groups,
        prefix=prefix,
        every=every,
        diff=diff,
        sub_domain=sub_domain,
    )
    print_answer(document, as_json=as_json, width=_PIPE_WIDTH)


def _check_usage(
    root: str | None, prefix: str | None, sub_domain: int | None, *, every: bool, diff: bool
) -> None:
    if every and root is not None:
        raise click.UsageError("--root and --all are mutually exclusive")
    if prefix is not None and (every or diff):
        raise click.UsageError("--explain is for one router: omit --all and --diff")
    if sub_domain is not None and (every or diff or prefix is not None):
        raise click.UsageError("--bier is for one router: omit --all, --diff and --explain")


def _compute(
    database: SavedDatabase,
    given: WhatIf,
    *,
    root: str | None,
    part: int | None,
    family: int,
    settings: SolverSettings,
    max_groups: int | None,
    prefix: str | None,
    every: bool,
    diff: bool,
    sub_domain: int | None,
) -> Answer:
    before = database.world(part, family, Changes())
    names = Names(before)
    changes = read_changes(names, given)
    after = database.world(part, family, changes)
    if prefix is not None:
        return _explain(after, _root(database, names, root, after), settings, prefix, max_groups)
    if sub_domain is not None:
        found = bier_document(after, _root(database, names, root, after), settings, sub_domain)
        if found is None:
            raise Failure(f"no router is in BIER sub-domain {sub_domain}")
        return found

    def answer(node: NodeId) -> OfflineRoutes | RoutesDiff:
        document = routes_document(after, node, settings, max_groups)
        if not diff:
            return document
        former = routes_document(before, node, settings, max_groups)
        return difference(former, document, given.described())

    if every:
        if not after.routers:
            raise Failure(f"no {_ROUTERS[database.proto]} in the database", DATABASES)
        return RoutesAll(roots=[answer(node) for node in after.routers])
    return answer(_root(database, names, root, after))


def _part(database: SavedDatabase, area: str | None, level: int | None) -> int | None:
    """Return the area or level to use, None for all. Raises click.UsageError."""
    return _PARTS[database.proto](database, area, level)


def _level(database: SavedDatabase, area: str | None, level: int | None) -> int | None:
    if area is not None:
        raise click.UsageError("--area is for OSPF; this is an IS-IS database: use --level")
    known = database.areas_known
    if level is not None and level not in known:
        shown = ", ".join(map(str, known)) or "none"
        raise click.BadParameter(
            f"no level {level} in the database; known: {shown}", param_hint="--level"
        )
    return level


def _area(database: SavedDatabase, area: str | None, level: int | None) -> int | None:
    if level is not None:
        raise click.UsageError("--level is for IS-IS; this is an OSPF database: use --area")
    if area is None:
        return None
    try:
        chosen = parse_area(area)
    except ValueError as error:
        raise click.BadParameter(f"{area!r} is not an area id", param_hint="--area") from error
    if chosen not in database.areas_known:
        shown = ", ".join(map(dotted, database.areas_known)) or "none"
        raise click.BadParameter(
            f"no area {area} in the database; known: {shown}", param_hint="--area"
        )
    return chosen


_PARTS = {"ospf": _area, "isis": _level}
_DESCRIPTIONS = {"ospf": "router LSA of {0}", "isis": "LSP of {0} that routes IPv{1}"}
"""The entry of the database without which a router has no routes of a family."""


_ROUTERS = {"ospf": "router LSA", "isis": "LSP"}
"""What a router of the database has."""


def _family(database: SavedDatabase, af: str) -> int:
    family = {"ipv4": 4, "ipv6": 6}[af]
    if family not in database.families:
        raise click.UsageError("OSPF routes IPv4 only: --af ipv6 requires an IS-IS database")
    return family


def _root(database: SavedDatabase, names: Names, text: str | None, after: World) -> NodeId:
    if text is None:
        root = database.own
        if root not in names.world.nodes:
            lacking = _DESCRIPTIONS[database.proto].format(format_node(root), after.family)
            raise Failure(f"no {lacking} in the database; choose a --root")
    else:
        root = names.node(text, "--root")
    if names.world.is_network(root):
        raise click.UsageError(f"{text} is a network: the root must be a router")
    if root not in after.nodes:
        raise click.UsageError(
            f"{text or format_node(root)} is the root: it has no routes if it fails"
        )
    return root


def _explain(
    world: World, root: NodeId, settings: SolverSettings, prefix: str, max_groups: int | None
) -> Explain:
    try:
        return explain_document(world, root, settings, prefix, max_groups)
    except CommandError as error:
        if error.code == "bad-argument":
            raise click.BadParameter(str(error), param_hint="--explain") from error
        raise Failure(str(error)) from error
