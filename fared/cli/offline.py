"""``fared-cli spf`` and ``fared-cli lsdb``: the daemon's computation on a file, and what if.

Nothing here needs a daemon, root or a network. What computes is imported when it is used.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fared.cli.session import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from fared.cli.offline_arguments import Names, WhatIf
    from fared.cli.offline_capture import OspfCapture
    from fared.cli.offline_capture_isis import IsisCapture
    from fared.cli.offline_world import Database, World
    from fared.core.ids import NodeId
    from fared.rib.settings import SolverSettings

Json = dict[str, Any]

_EPILOG = """
Routers are named by router id, system id or hostname. A,B names all parallel links between two routers;
--set-cost and --set-bandwidth are of the direction A to B and apply to each of parallel links.
A failed link takes the subnet of the link with it. Where two routers meet on a LAN, A,B
is the link of A into it: when it fails, A loses everybody on the LAN, who keep each other.
A,net:ADDRESS is the same link, by the address of the LAN's designated router, and net:ADDRESS as N
is the whole LAN; with IS-IS that is the pseudonode, 0102.5500.0001.04. Next hops are those of the file's
interfaces where the root is the router it was saved on, else named by neighbor.

\b
What if the link between leaf1 and spine1 dies, seen from everywhere?
  fared-cli spf --lsdb db.json --all --diff --fail-link leaf1,spine1
What if spine1 can only send at a quarter to leaf2?
  fared-cli spf --lsdb db.json --diff --set-bandwidth spine1,leaf2=100G

Exit codes: 0 ok, 1 bad file or no such route, 2 usage.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--lsdb", "source", metavar="FILE|-", required=True, help="What show lsdb --json gave."
)
@click.option("--root", metavar="ID", help="Compute as this router (default: the file's).")
@click.option("--all", "every", is_flag=True, help="Compute as every router.")
@click.option("--area", metavar="A", help="Take one area only (OSPF).")
@click.option("--level", type=click.IntRange(1, 2), help="Take one level only (IS-IS).")
@click.option("--af", type=click.Choice(["ipv4", "ipv6"]), default="ipv4", show_default=True)
@click.option(
    "--max-paths",
    type=click.IntRange(1, 1024),
    default=64,
    show_default=True,
    help="Next hops a route may have.",
)
@click.option(
    "--weights",
    type=click.Choice(["none", "capacity", "available"]),
    default="capacity",
    show_default=True,
    help="What weights follow; none is plain ECMP.",
)
@click.option(
    "--flows",
    type=click.IntRange(1, 1_000_000),
    help="Lean away from small paths, for so many large flows (default: in proportion).",
)
@click.option("--fail-link", "fail_links", metavar="A,B", multiple=True, help="The link is gone.")
@click.option("--fail-node", "fail_nodes", metavar="N", multiple=True, help="The router is gone.")
@click.option("--set-cost", "costs", metavar="A,B=N", multiple=True, help="The metric is N.")
@click.option(
    "--set-bandwidth",
    "bandwidths",
    metavar="A,B=25G",
    multiple=True,
    help="The link carries so many bits/s.",
)
@click.option("--overload", "overloads", metavar="N", multiple=True, help="No transit through N.")
@click.option("--diff", is_flag=True, help="Show only what these changes change.")
@click.option("--explain", "prefix", metavar="PREFIX", help="Why this route is as it is.")
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
    fail_links: tuple[str, ...],
    fail_nodes: tuple[str, ...],
    costs: tuple[str, ...],
    bandwidths: tuple[str, ...],
    overloads: tuple[str, ...],
    prefix: str | None,
    every: bool,
    diff: bool,
    as_json: bool,
) -> None:
    """Compute the routes of a saved link state database, as the daemon would, and what if.

    Without options these are the routes of the router that the database was saved on.
    """
    from fared.cli.offline_arguments import WhatIf  # noqa: PLC0415 - --help needs no solver

    _check_usage(root, prefix, every=every, diff=diff)
    given = WhatIf(fail_links, fail_nodes, costs, bandwidths, overloads)
    if diff and not given.described():
        raise click.UsageError("--diff needs a change: --fail-link, --set-bandwidth, --overload...")
    database = _load(source)
    document = _compute(
        database,
        given,
        root=root,
        part=_part(database, area, level),
        family=_family(database, af),
        settings=_settings(max_paths, weights, flows),
        prefix=prefix,
        every=every,
        diff=diff,
    )
    _print(document, as_json=as_json)


def _check_usage(root: str | None, prefix: str | None, *, every: bool, diff: bool) -> None:
    if every and root is not None:
        raise click.UsageError("--root and --all exclude each other")
    if prefix is not None and (every or diff):
        raise click.UsageError("--explain is of one router as it is: leave out --all and --diff")


def _settings(max_paths: int, weights: str, flows: int | None) -> SolverSettings:
    from fared.rib.settings import SolverSettings  # noqa: PLC0415
    from fared.weights.path_capacity import WeightMode  # noqa: PLC0415

    return SolverSettings(max_paths=max_paths, mode=WeightMode(weights), flows=flows)


def _load(source: str) -> Database:
    from fared.cli.offline_file import read_database  # noqa: PLC0415
    from fared.cli.offline_world import FileError  # noqa: PLC0415

    name = "standard input" if source == "-" else source
    try:
        text = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        return read_database(text)
    except OSError as error:
        raise Failure(f"{name}: {error.strerror or error}") from error
    except FileError as error:
        raise Failure(f"{name}: {error}") from error


def _compute(
    database: Database,
    given: WhatIf,
    *,
    root: str | None,
    part: int | None,
    family: int,
    settings: SolverSettings,
    prefix: str | None,
    every: bool,
    diff: bool,
) -> Json:
    from fared.cli.offline_arguments import Names, read_changes  # noqa: PLC0415
    from fared.cli.offline_diff import difference  # noqa: PLC0415
    from fared.cli.offline_solve import routes_document  # noqa: PLC0415
    from fared.ted.whatif import Changes  # noqa: PLC0415

    before = database.world(part, family, Changes())
    names = Names(before)
    changes = read_changes(names, given)
    after = database.world(part, family, changes)
    if prefix is not None:
        return _explain(after, _root(database, names, root, after), settings, prefix)

    def answer(node: NodeId) -> Json:
        document = routes_document(after, node, settings)
        if not diff:
            return document
        return difference(routes_document(before, node, settings), document, given.described())

    if every:
        return {"format": "fared-routes-all/1", "roots": [answer(node) for node in after.routers]}
    return answer(_root(database, names, root, after))


def _part(database: Database, area: str | None, level: int | None) -> int | None:
    """The area or level to take, None for all. Raises click.UsageError."""
    from fared.core.ids import dotted, parse_area  # noqa: PLC0415

    if database.proto == "isis":
        if area is not None:
            raise click.UsageError("--area is for OSPF; this is a database of IS-IS: --level")
        known = database.areas_known
        if level is not None and level not in known:
            shown = ", ".join(map(str, known)) or "none"
            raise click.BadParameter(
                f"no level {level} in the database; known: {shown}", param_hint="--level"
            )
        return level
    if level is not None:
        raise click.UsageError("--level is for IS-IS; this is a database of OSPF: --area")
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


def _family(database: Database, af: str) -> int:
    family = {"ipv4": 4, "ipv6": 6}[af]
    if family not in database.families:
        raise click.UsageError("OSPF routes IPv4 only: --af ipv6 is for databases of IS-IS")
    return family


def _root(database: Database, names: Names, text: str | None, after: World) -> NodeId:
    from fared.core.ids import format_node  # noqa: PLC0415

    if text is None:
        root = database.own
        if root not in names.world.nodes:
            isis = database.proto == "isis"
            kind, at = ("LSP", f" that routes IPv{after.family}") if isis else ("router LSA", "")
            raise Failure(f"no {kind} of {format_node(root)}{at} in the database; choose a --root")
    else:
        root = names.node(text, "--root")
    if names.world.is_network(root):
        raise click.UsageError(f"{text} is a network: the root is a router")
    if root not in after.nodes:
        raise click.UsageError(
            f"{text or format_node(root)} is the root: it has no routes when it fails"
        )
    return root


def _explain(world: World, root: NodeId, settings: SolverSettings, prefix: str) -> Json:
    from fared.api.control import CommandError  # noqa: PLC0415
    from fared.cli.offline_solve import explain_document  # noqa: PLC0415

    try:
        return explain_document(world, root, settings, prefix)
    except CommandError as error:
        if error.code == "bad-argument":
            raise click.BadParameter(str(error), param_hint="--explain") from error
        raise Failure(str(error)) from error


def _print(document: Json, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
        return
    from fared.cli.offline_tables import render  # noqa: PLC0415 - rich only for tables

    click.echo(render(document), nl=False)


@click.group()
def lsdb() -> None:
    """Make link state database files for spf."""


@lsdb.command("from-pcap")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--proto", type=click.Choice(["ospf", "isis"]), help="Needed where both are there.")
@click.option("--json", "as_json", is_flag=True, help="The same: the document is JSON anyway.")
def from_pcap(file: Path, *, proto: str | None, as_json: bool) -> None:
    """Rebuild the database of a capture. It is what the LSAs or LSPs in FILE add up to.

    Ages are those at the end of the capture. The file does not say who captured: router_id or
    system_id is the first router heard, and spf takes another --root.
    """
    from fared.cli.capture import CaptureError  # noqa: PLC0415
    from fared.cli.offline_capture import gather_ospf  # noqa: PLC0415
    from fared.cli.offline_capture_isis import gather_isis  # noqa: PLC0415

    del as_json
    found: list[OspfCapture | IsisCapture] = []
    refused: list[CaptureError] = []
    gatherers: dict[str, Callable[[Path], OspfCapture | IsisCapture]] = {
        "ospf": gather_ospf,
        "isis": gather_isis,
    }
    chosen = list(gatherers) if proto is None else [proto]
    for name in chosen:
        try:
            found.append(gatherers[name](file))
        except OSError as error:
            raise Failure(f"{file}: {error.strerror or error}") from error
        except CaptureError as error:  # raw IP carries no IS-IS
            refused.append(error)
    if not found:
        raise Failure(str(refused[0]))
    for what, number in _left_out(found).items():
        click.echo(f"{file}: left out {number} x {what}", err=True)
    whole = [capture for capture in found if not capture.empty]
    if not whole:
        wanted = {"ospf": "LS updates", "isis": "LSPs"}
        raise Failure(f"{file}: no {' and no '.join(wanted[name] for name in chosen)}")
    if len(whole) > 1:
        raise click.UsageError(f"{file} has LS updates of OSPF and LSPs of IS-IS: choose a --proto")
    click.echo(json.dumps(whole[0].document(), indent=2))


def _left_out(found: list[OspfCapture | IsisCapture]) -> Counter[str]:
    """What was left out, and how often."""
    total: Counter[str] = Counter()
    for capture in found:
        total += capture.skipped
    return total
