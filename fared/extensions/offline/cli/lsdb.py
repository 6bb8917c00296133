"""``fared-cli lsdb``: databases from captures, for ``spf`` and ``plan``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click

from fared.extensions.offline.isis.gather import IsisCapture, gather_isis
from fared.extensions.offline.ospf.capture import others
from fared.extensions.offline.ospf.gather import OspfCapture, gather_ospf
from fared.extensions.offline.pcap import CaptureError
from fared.management.cli.session import Failure

_CAPTURES = "'tcpdump -i swp1 -w FILE' writes a capture, from before the adjacency forms"


@click.group()
def lsdb() -> None:
    """Make link-state database files for spf."""


@lsdb.command("from-pcap")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--proto", type=click.Choice(["ospf", "isis"]), help="Required if the file has both.")
@click.option("--json", "as_json", is_flag=True, help="No effect: the output is always JSON.")
def from_pcap(file: Path, *, proto: str | None, as_json: bool) -> None:
    """Rebuild the database from a capture. It contains the LSAs or LSPs in FILE.

    Ages are those at the end of the capture. The file does not tell which router captured:
    router_id or system_id is the first router in it, and spf accepts another --root.
    """
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
            raise Failure(f"{file}: {error.strerror or error}", _CAPTURES) from error
        except CaptureError as error:  # raw IP carries no IS-IS
            refused.append(error)
    if not found:
        raise Failure(str(refused[0]), _CAPTURES)
    for what, number in _left_out(found).items():
        click.echo(f"{file}: ignored {number} x {what}", err=True)
    whole = [capture for capture in found if not capture.empty]
    if not whole:
        wanted = {"ospf": "LS updates", "isis": "LSPs"}
        text = f"{file}: no {' and no '.join(wanted[name] for name in chosen)}"
        raise Failure("; ".join([text, *_seen(file)]), _CAPTURES)
    if len(whole) > 1:
        raise click.UsageError(f"{file} has LS updates of OSPF and LSPs of IS-IS: use --proto")
    click.echo(json.dumps(whole[0].document(), indent=2))


def _seen(file: Path) -> list[str]:
    """Return what a capture has of OSPF in a form that is not read."""
    try:
        return [f"{number} x {what}" for what, number in others(file).items()]
    except CaptureError:  # a link type that carries no IP
        return []


def _left_out(found: list[OspfCapture | IsisCapture]) -> Counter[str]:
    """Count ignored packets by reason."""
    total: Counter[str] = Counter()
    for capture in found:
        total += capture.skipped
    return total
