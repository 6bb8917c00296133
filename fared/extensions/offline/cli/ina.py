"""``fared-cli ina plan``: the aggregation trees of a job, from a saved database.

No daemon, root or network is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import click
from msgspec.structs import replace

from fared.core.ids import NodeId, format_node
from fared.core.units import parse_bandwidth
from fared.extensions.ina.plan.dissemination import AS_ASKED, lacks_bier, plan_results
from fared.extensions.ina.plan.given import TreeError, check_given, parse_tree
from fared.extensions.ina.plan.model import Capacities, GivenTree, SummingJob, TreePlan
from fared.extensions.ina.plan.planner import plan_job
from fared.extensions.offline.changes import Changes
from fared.extensions.offline.cli.arguments import Names, WhatIf, read_changes
from fared.extensions.offline.cli.options import FAIL_LINK, FAIL_NODE, LSDB, SET_BANDWIDTH
from fared.extensions.offline.cli.printing import print_answer
from fared.extensions.offline.cli.source import load_database
from fared.extensions.offline.ina.document import plan_document
from fared.extensions.offline.ina.network import capacities, router_of_host
from fared.extensions.offline.world import World
from fared.management.cli.session import Failure

_MOST_WORKERS = 4096
_WIDTH = 80
"""The longest bit string of BIER (RFC 8296 §2.1.2)."""
_EPILOG = """
A worker is named by its router (router id, system id or hostname) or by its own address; leaf3:4
is four workers on leaf3. They get BFR-ids from 1 up, in the order given.

\b
The plan if spine1 and leaf2 lose their link:
  fared-cli ina plan --lsdb db.json --workers leaf1,leaf2,leaf3 --fail-link leaf2-spine1

\b
A tree of your own, with sums at leaf1 and leaf2, and the root spine1:
  fared-cli ina plan --lsdb db.json --workers leaf1:2,leaf2:2 --tree leaf1,leaf2,spine1

Exit codes: 0 ok, 1 bad file or no tree, 2 usage.
"""


@click.command(epilog=_EPILOG)
@click.option("--lsdb", "source", metavar="FILE|-", required=True, help=LSDB)
@click.option("--workers", metavar="A,B:4,...", required=True, help="Where the workers are.")
@click.option("--nic", metavar="100G", help="Bandwidth of each worker (default: unlimited).")
@FAIL_LINK
@FAIL_NODE
@SET_BANDWIDTH
@click.option("--no-relays", is_flag=True, help="Use stars only.")
@click.option(
    "--optimum", is_flag=True, help="Find the best trees with an LP (needs SciPy: fared[ina])."
)
@click.option(
    "--tree",
    "given",
    metavar="ROUTER[:NEXT],...,ROOT",
    help="Sum at these routers, each at the first on its way, instead of planned trees.",
)
@click.option(
    "--bier/--unicast",
    default=None,
    help="Results by BIER, or a copy for each worker.  [default: by BIER, where all have it]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the JSON document.")
def plan(
    *,
    source: str,
    workers: str,
    nic: str | None,
    fail_links: tuple[str, ...],
    fail_nodes: tuple[str, ...],
    bandwidths: tuple[str, ...],
    no_relays: bool,
    optimum: bool,
    given: str | None,
    bier: bool | None,
    as_json: bool,
) -> None:
    """Compute aggregation trees, their rates, the bound, and the load of links."""
    if sum((no_relays, optimum, given is not None)) > 1:
        raise click.UsageError("--no-relays, --optimum and --tree are mutually exclusive")
    database = load_database(source)
    before = database.world(None, database.families[0], Changes())
    names = Names(before)
    what_if = WhatIf(fail_links, fail_nodes, (), bandwidths, ())
    after = database.world(None, database.families[0], read_changes(names, what_if))
    job = replace(_job(names, workers, nic), unicast=AS_ASKED if bier is False else "")
    network = capacities(after)
    job = replace(job, wide=_crosses(after, job))
    if given is not None:
        job = replace(job, given=_given(names, network, job, given))

    def planned(one: SummingJob) -> TreePlan:
        return _optimum(network, one) if optimum else plan_job(network, one, relays=not no_relays)

    bfrs = frozenset(update.node for update in after.bier() if update.is_bfr)
    (found,) = plan_results(
        lambda jobs: [planned(one) for one in jobs],
        [job],
        lambda one: "" if bier else lacks_bier(one, bfrs, network.adders, _named(after)),
    )
    if not found.trees:
        raise Failure(_why_no_tree(network, job))
    document = plan_document(network, found, after.hostnames, what_if.described())
    print_answer(document, as_json=as_json, width=_WIDTH)


def _named(world: World) -> Callable[[int], str]:
    """Return what names a router: its hostname, or its id."""
    return lambda node: world.hostnames.get(NodeId(node)) or format_node(NodeId(node))


def _crosses(world: World, job: SummingJob) -> bool:
    """Whether the workers' routers have no area or level in common."""
    areas = [
        {area for area, blocks in world.blocks.items() if NodeId(leaf) in blocks}
        for leaf in job.leaves
    ]
    return not set.intersection(*areas)


def _given(names: Names, network: Capacities, job: SummingJob, text: str) -> GivenTree:
    """Read a tree. Raises BadParameter, or Failure if the job cannot have it."""
    try:
        given = parse_tree(text, lambda name: names.node(name, "--tree"))
    except TreeError as error:
        raise click.BadParameter(str(error), param_hint="--tree") from error
    try:
        check_given(network, job, given, _named(names.world))
    except TreeError as error:
        raise Failure(f"no such tree: {error}") from error
    return given


def _job(names: Names, workers: str, nic: str | None) -> SummingJob:
    at: dict[int, int] = {}
    for word in workers.split(","):
        name, colon, number = word.strip().partition(":")
        count = int(number) if number.isascii() and number.isdecimal() else 0
        if colon and not 1 <= count <= _MOST_WORKERS:
            raise click.BadParameter(
                f"{word!r} is not ROUTER:N with N from 1 to {_MOST_WORKERS}",
                param_hint="--workers",
            )
        router = _router(names, name)
        for _ in range(count if colon else 1):
            at[len(at) + 1] = router
    if not 2 <= len(at) <= _MOST_WORKERS:
        raise click.BadParameter(f"2 to {_MOST_WORKERS} workers", param_hint="--workers")
    try:
        rate = math.inf if nic is None else parse_bandwidth(nic)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--nic") from error
    return SummingJob("plan", at, rate)


def _router(names: Names, name: str) -> NodeId:
    known = {*names.world.nodes}
    host = router_of_host(names.world, name)
    try:
        found = names.node(name, "--workers")
    except click.BadParameter:
        if host is None:
            raise
        return host
    if found not in known or names.world.is_network(found):
        raise click.BadParameter(f"{name} is a network", param_hint="--workers")
    return found


def _optimum(network: Capacities, job: SummingJob) -> TreePlan:
    try:
        from fared.extensions.offline.ina.columns import best_stars_and_relays  # noqa: PLC0415 - extra ``ina``
    except ModuleNotFoundError as error:
        raise Failure("--optimum needs SciPy: pip install 'fared[ina]'") from error
    try:
        return best_stars_and_relays(network, job)
    except ArithmeticError as error:
        raise Failure(str(error)) from error


def _why_no_tree(network: Capacities, job: SummingJob) -> str:
    if any(math.isinf(network.width(*link)) for link in network.links) and math.isinf(job.nic):
        return "no limit: the database has no bandwidth of the links; use --nic or --set-bandwidth"
    return "no tree: a worker cannot reach the others"
