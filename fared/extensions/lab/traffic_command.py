"""``fared-lab traffic``: flows between two hosts of a lab, or workloads of AI."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from fared.core.units import format_bandwidth
from fared.extensions.lab import holder, iperf, named
from fared.extensions.lab import traffic as traffic_
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.pattern_commands import pattern_commands
from fared.extensions.lab.tables import packet_order_table, segment_order_table, shares_table
from fared.extensions.lab.udp import LEAST_PAYLOAD, MOST_PAYLOAD, PAYLOAD
from fared.extensions.lab.workload_command import collective_commands
from fared.extensions.lab.workload_options import congestion_option


class _TrafficGroup(click.Group):
    """Lists its subcommands by kind."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        patterns = [one.name for one in pattern_commands()]
        told = [(name, one.get_short_help_str(80)) for name, one in self.commands.items()]
        with formatter.section("Collectives"):
            formatter.write_dl([line for line in told if line[0] not in patterns])
        with formatter.section("Training and inference"):
            formatter.write_dl([line for line in told if line[0] in patterns])


@click.group(
    cls=_TrafficGroup,
    invoke_without_command=True,
    subcommand_metavar="[WORKLOAD [OPTIONS]]",
)
@click.option(
    "--from",
    "source",
    metavar="RANK",
    help="The sending host, or GPU: g1.3.",
    shell_complete=named.ranks,
)
@click.option(
    "--to", "destination", metavar="RANK", help="The receiving one.", shell_complete=named.ranks
)
@click.option(
    "--flows",
    default=traffic_.DEFAULT_FLOWS,
    show_default=True,
    help="Number of flows, each with its own five-tuple.",
)
@click.option(
    "--packets-per-flow", default=1, show_default=True, help="Packets of one source port."
)
@click.option(
    "--rate", default=traffic_.DEFAULT_RATE, show_default=True, help="Packets per second."
)
@click.option(
    "--payload",
    type=click.IntRange(LEAST_PAYLOAD, MOST_PAYLOAD),
    default=PAYLOAD,
    show_default=True,
    help="Bytes of a packet, without headers.",
)
@click.option("--iperf3", "streams", type=int, metavar="N", help="N TCP streams instead of flows.")
@click.option("--seconds", default=5, show_default=True, help="Duration of iperf3.")
@congestion_option
@click.option("--ipv6", is_flag=True, help="Flows over IPv6, where IS-IS runs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def traffic(
    context: click.Context,
    *,
    source: str | None,
    destination: str | None,
    flows: int,
    packets_per_flow: int,
    rate: int,
    payload: int,
    streams: int | None,
    seconds: int,
    congestion: str,
    ipv6: bool,
    as_json: bool,
) -> None:
    """Send UDP flows between two hosts, or run a workload of AI training and inference.

    Flows show each uplink's share with its weight. A WORKLOAD runs over TCP between many hosts
    and shows its completion times; its options follow its name (WORKLOAD --help).
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    if source is None or destination is None:
        raise click.UsageError("--from and --to are required, or a workload")

    def send(fabric: Fabric) -> int:
        if streams is not None:
            moved = iperf.transfer(
                fabric,
                source,
                destination,
                streams=streams,
                seconds=seconds,
                congestion=congestion,
            )
            _show_transfer(moved, as_json=as_json)
            return 0
        report = traffic_.measure(
            fabric,
            source,
            destination,
            flows=flows,
            packets_per_flow=packets_per_flow,
            rate=rate,
            payload=payload,
            ipv6=ipv6,
        )
        _show_shares(report, as_json=as_json)
        return 0

    sys.exit(holder.choose(context.obj).run(send))


def _show_transfer(moved: iperf.Transfer, *, as_json: bool) -> None:
    if as_json:
        click.echo(moved.as_json())
        return
    click.echo(f"{moved.streams} streams: {format_bandwidth(moved.goodput)} bit/s goodput\n")
    Console().print(segment_order_table({"iperf3": moved.order}))


def _show_shares(report: traffic_.TrafficReport, *, as_json: bool) -> None:
    if as_json:
        click.echo(report.as_json())
        return
    Console().print(shares_table(report))
    if report.order is not None:
        Console().print(packet_order_table(report.sent, report.order))


def _refuse_options(context: click.Context) -> None:
    """Reject options of flows before a collective, which would be ignored."""
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "")
        if given is click.core.ParameterSource.COMMANDLINE:
            name, collective = option.opts[0], context.invoked_subcommand
            raise click.UsageError(f"{name} must follow {collective}, if {collective} has it")


for _command in (*collective_commands(), *pattern_commands()):
    traffic.add_command(_command)
