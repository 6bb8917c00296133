"""``fared-lab``: real fabrics on one machine, from containerlab topology files."""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from fared.core import link_text
from fared.core.link_text import LinkText
from fared.core.units import format_bandwidth, parse_bandwidth
from fared.extensions.lab import holder, labels, named, shipped, topology
from fared.extensions.lab.acts.names import ACTS, ActName, refuse
from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.generate.command import generate
from fared.extensions.lab.node import exec_node
from fared.extensions.lab.page import HTTP_PORT, listen, show_page
from fared.extensions.lab.ranks import ranks_at
from fared.extensions.lab.status import show_status
from fared.extensions.lab.traffic_command import traffic
from fared.extensions.lab.waiting import await_paths
from fared.management.cli.completion import completion_of
from fared.management.cli.ends import Program

_SHOW_ROUTES = {"fared": "show routes", "frr": "show ip route", "bird": "show route"}
_VERBATIM = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def _without_separator(
    context: click.Context, parameter: click.Parameter, words: tuple[str, ...]
) -> tuple[str, ...]:
    """Drop the ``--`` before a command: click keeps it, because NODE ended our options."""
    if words[:1] != ("--",):
        return words
    if parameter.required and len(words) == 1:
        raise click.MissingParameter(ctx=context, param=parameter)
    return words[1:]


def _verbatim(name: str, *, required: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare an argument for the rest of the line, options included, for another program."""
    return click.argument(
        name, nargs=-1, required=required, type=click.UNPROCESSED, callback=_without_separator
    )


class _Group(Program):
    """Reports LabErrors as a line on stderr and an exit code."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except LabError as error:
            click.echo(f"fared-lab: {error}", err=True)
            sys.exit(error.exit_code)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--lab", "name", metavar="NAME", help="The lab, if several are up; with up: its name."
)
@click.version_option(package_name="fared")
@click.pass_context
def main(context: click.Context, name: str | None) -> None:
    """Build fabrics in network namespaces from containerlab topology files."""
    context.obj = name


_as_kind = click.option(
    "--as",
    "as_kind",
    type=click.Choice(labels.ROUTER_KINDS),
    help="Run every router as this kind instead of its own, a vendor's among them.",
)
_keep_addresses = click.option(
    "--keep-addresses",
    is_flag=True,
    help="Take addresses from frr.conf and `ip addr add` of the file where they agree.",
)


def _load(file: Path, as_kind: str | None, *, keep_addresses: bool) -> topology.LabTopology:
    """Read a topology; tell what the lab does otherwise than containerlab."""
    source = topology.load(file, as_kind, keep_addresses=keep_addresses)
    for note in source.notes:
        click.echo(note, err=True)
    return source


@main.command()
@shipped.argument()
@_as_kind
@_keep_addresses
@click.option("--wait", default=0.0, metavar="SECONDS", help="Wait so long for all routes.")
@click.pass_obj
def up(
    name: str | None, *, file: Path, as_kind: str | None, keep_addresses: bool, wait: float
) -> None:
    """Build a fabric and leave it running.

    TOPOLOGY is a file, - for standard input, or one of ``fared-lab topologies`` by its name. Any
    topology file of containerlab will do: with --as, routers of all vendors are replaced.
    """
    source = _load(file, as_kind, keep_addresses=keep_addresses)
    if name is not None:
        source = topology.renamed(source, name)
    lab = holder.up(source, as_kind)
    click.echo(f"lab {lab.name} is up; state and logs in {lab.directory}")
    if wait:
        code = lab.run(lambda fabric: _await_paths(fabric, wait))
        if code:
            sys.exit(code)
    command = _program() if name is None else f"{_program()} --lab {name}"
    for step in _next_steps(source, as_kind):
        click.echo(f"  {command} {step}", err=True)


def _next_steps(source: topology.LabTopology, as_kind: str | None) -> Iterator[str]:
    """Yield commands to try next, with the names of existing nodes."""
    plan = make_plan(source)
    yield "status"
    for router in (*plan.leaves, *plan.routers)[:1]:
        yield f"cli {router.name} {_SHOW_ROUTES[as_kind or router.node.kind]}"
    if len(plan.leaves) > 1:
        first, last = ranks_at(plan, plan.leaves[0].name), ranks_at(plan, plan.leaves[-1].name)
        yield f"traffic --from {first[0].name} --to {last[-1].name}"
    yield "page"
    yield "down"


def _await_paths(fabric: Fabric, timeout: float) -> int:
    if await_paths(fabric, timeout) is None:
        raise LabError(f"after {timeout:g} s not every router has all routes")
    click.echo("every router has all routes")
    return 0


@main.command()
@click.pass_obj
def down(name: str | None) -> None:
    """Stop the lab: its daemons and namespaces."""
    lab = holder.choose(name)
    holder.down(lab)
    click.echo(f"lab {lab.name} is down")


@main.command()
@click.pass_obj
def status(name: str | None) -> None:
    """Show the nodes of the lab and the processes in them."""
    _exit(holder.choose(name).run(show_status))


@main.command(name="exec", context_settings=_VERBATIM)
@click.argument("node", shell_complete=named.nodes)
@_verbatim("command", required=True)
@click.pass_obj
def exec_(name: str | None, node: str, command: tuple[str, ...]) -> None:
    """Run COMMAND in the network namespace of NODE."""
    _exit(holder.choose(name).run(lambda fabric: fabric.node(node).call(command)))


@main.command(context_settings=_VERBATIM)
@click.argument("node", shell_complete=named.nodes)
@_verbatim("arguments", required=False)
@click.pass_obj
def cli(name: str | None, node: str, arguments: tuple[str, ...]) -> None:
    """Run the operator's tool of NODE: fared-cli, vtysh or birdc."""

    def speak(fabric: Fabric) -> int:
        target = fabric.node(node)
        return target.call(target.kind.cli(target.directory, arguments))

    _exit(holder.choose(name).run(speak))


_link = click.argument("words", metavar="A-B", nargs=-1, required=True, shell_complete=named.links)


def _ends(fabric: Fabric, words: tuple[str, ...]) -> LinkText:
    """Return the link of ``A-B``, ``A > B`` or ``A B``. Raises LabError."""
    try:
        return link_text.read((", " if len(words) == 2 else " ").join(words), fabric.nodes)
    except ValueError as error:
        raise LabError(str(error)) from error


@main.command()
@_link
@click.pass_obj
def fail(name: str | None, words: tuple[str, ...]) -> None:
    """Take the link between A and B down, at A."""
    _do(name, lambda fabric: fabric.fail(*_ends(fabric, words)[:2]))


@main.command()
@_link
@click.pass_obj
def heal(name: str | None, words: tuple[str, ...]) -> None:
    """Bring the link between A and B up again."""
    _do(name, lambda fabric: fabric.heal(*_ends(fabric, words)[:2]))


@main.command()
@_link
@click.argument("rate")
@click.pass_obj
def shape(name: str | None, words: tuple[str, ...], rate: str) -> None:
    """Limit the rate of a link to RATE, bit/s: 25M, 1G, ...; `off` removes the limit.

    'A > B', or A B, is one direction of it.
    """
    try:
        value = None if rate in {"off", "none"} else parse_bandwidth(rate)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="RATE") from error

    def limit(fabric: Fabric) -> None:
        ends = _ends(fabric, words)
        fabric.shape(ends.tail, ends.head, value)
        if ends.both:
            fabric.shape(ends.head, ends.tail, value)
        spelling = link_text.link if ends.both else link_text.direction
        limited = "unlimited" if value is None else f"{format_bandwidth(value)} bit/s"
        click.echo(f"{spelling(ends.tail, ends.head)}: {limited}")

    _do(name, limit)


@main.command()
@click.argument("node", required=False, shell_complete=named.nodes)
@click.option("--port", default=HTTP_PORT, show_default=True, help="Port of this machine.")
@click.pass_obj
def page(name: str | None, node: str | None, port: int) -> None:
    """Serve the page of NODE at this machine until Ctrl-C.

    It draws the fabric. The default is the first leaf. If the port is taken, any free one is used.
    """
    lab = holder.choose(name)
    with listen(port) as listener:  # before the lab's namespaces are entered
        _exit(lab.run(lambda fabric: show_page(fabric, node, listener)))


main.add_command(traffic)
main.add_command(completion_of(main, "fared-lab"))


@main.command()
@shipped.argument(default=shipped.DEFAULT)
@_as_kind
@_keep_addresses
@click.option(
    "--act", type=ActName(), help=f"Play another act instead: {', '.join(ACTS)}.", metavar="ACT"
)
@click.option(
    "--draw",
    "picture",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw what it measured: a .png or .svg.",
)
def demo(
    *,
    file: Path,
    as_kind: str | None,
    keep_addresses: bool,
    act: str | None,
    picture: Path | None,
) -> None:
    """Demonstrate the daemon on a fabric. Removes everything at the end.

    TOPOLOGY is a file, - for standard input, or one of ``fared-lab topologies`` by its name; the
    default is clos3.
    """
    from fared.extensions.lab.demonstrations import demonstrate  # noqa: PLC0415 - see its head

    source = _load(file, as_kind, keep_addresses=keep_addresses)
    if act is not None:
        refuse(source, act, as_kind)
    code = demonstrate(source, as_kind=as_kind, act=act, picture=picture)
    if code == 0 and file != topology.STDIN:
        as_ = "" if as_kind is None else f" --as {as_kind}"
        as_ += " --keep-addresses" if keep_addresses else ""
        click.echo(f"  keep it: {_program()} up {_typed(file)}{as_}")
    _exit(code)


@main.command()
def topologies() -> None:
    """List the topologies that come with fared, by the names that `up` and `demo` know."""
    known = shipped.files()
    width = max(map(len, known))
    for name, path in known.items():
        click.echo(f"{name:<{width}}  {shipped.title(path)}")


main.add_command(generate)


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("node", required=False)
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    default=Path("/run/fared"),
    show_default=True,
    help="Directory for its configuration and control socket.",
)
@click.option(
    "--wait",
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait so long for its interfaces.",
)
@click.option(
    "--user",
    metavar="NAME",
    envvar="FARED_LAB_USER",
    help="Account of fared, which keeps the capabilities it needs; by default your own.",
)
def node(file: Path, node: str | None, directory: Path, wait: float, user: str | None) -> None:
    """Run NODE of FILE in the present container. The default is the node of its host name.

    Sets addresses and rates, writes the configuration and becomes the node's daemon. This is the
    command of the containers that containerlab starts.
    """
    plan = make_plan(topology.load(file)).node(node or socket.gethostname())
    exec_node(plan, directory, wait, user)


def _program() -> str:
    """This program, as the shell finds it."""
    here = Path(sys.argv[0])
    found = shutil.which("fared-lab")
    if here.name != "fared-lab" or (found is not None and Path(found).samefile(here)):
        return "fared-lab"
    inside = here.is_relative_to(Path.cwd())
    return str(here.relative_to(Path.cwd()) if inside else here)


def _typed(file: Path) -> str:
    """A topology, as it is typed: its name, if it comes with fared."""
    return next((name for name, path in shipped.files().items() if path == file), str(file))


def _do(name: str | None, action: Callable[[Fabric], None]) -> None:
    def run(fabric: Fabric) -> int:
        action(fabric)
        return 0

    code = holder.choose(name).run(run)
    if code:
        sys.exit(code)


def _exit(code: int) -> None:
    sys.exit(code)


if __name__ == "__main__":
    main()
