"""``fared-cli decode``: decodes packets with the daemon's codecs, without a daemon."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from fared.core.wire import DecodeError
from fared.extensions.offline.decoded import failure
from fared.extensions.offline.ospf.decode import parse_auth
from fared.extensions.offline.pcap import CaptureError
from fared.management.cli.session import Failure
from fared.protocols.igp.keys import AuthKey

Json = dict[str, Any]

_HEX_NOISE = str.maketrans("", "", " \t\r\n:")
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_NAMES = {"ospf": "OSPF", "isis": "IS-IS", "bgp": "BGP"}
_UNITS = {"bgp": "messages"}
_NO_FORM = {
    ("isis", "lsa"): "IS-IS has no LSAs: use --form packet for a whole LSP",
    ("bgp", "lsa"): "BGP has messages: omit --form",
    ("bgp", "tlvs"): "BGP has messages: omit --form",
}


@click.command(name="decode")
@click.option(
    "--proto", type=click.Choice(["ospf", "isis", "bgp"]), required=True, help="Protocol."
)
@click.option(
    "--form",
    type=click.Choice(["packet", "lsa", "tlvs"]),
    default="packet",
    show_default=True,
    help="Form of the bytes: a packet (with or without IPv4, LLC or Ethernet headers), one LSA "
    "(OSPF), or the TLVs of an opaque LSA or of an IS-IS PDU.",
)
@click.option(
    "--auth",
    metavar="ALGORITHM:ID:KEY",
    help="Verify the authentication: md5:1:KEY (IS-IS: or hmac-md5), hmac-sha256:1:KEY, "
    "cleartext:KEY.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (fared-decode/1).")
@click.option("--reencode", is_flag=True, help="Encode again, print the hex and compare.")
@click.argument("source", metavar="HEX|-|FILE.pcap")
@click.pass_context
def decode(
    ctx: click.Context,
    proto: str,
    form: str,
    auth: str | None,
    source: str,
    *,
    as_json: bool,
    reencode: bool,
) -> None:
    """Decode a packet given as HEX, as lines of hex on standard input, or in a capture.

    Lines (-) give one JSON document each, captures one for each packet, or message of BGP, whose
    TCP streams are put together; malformed ones do not stop the rest. Empty lines and lines that
    start with # are skipped. Exit codes: 0 all well formed, 1 some malformed, 2 usage.
    """
    if refusal := _NO_FORM.get((proto, form)):
        raise click.UsageError(refusal)
    key = _parse_key(auth, proto, form)
    documents = _documents(source, proto, form, key, reencode=reencode)
    bad = 0
    seen = 0
    for document in documents:
        seen += 1
        bad += not document["ok"]
        _print(document, as_json=as_json or source == "-")
    if not seen and source != "-":
        click.echo(f"{source}: no {_NAMES[proto]} {_UNITS.get(proto, 'packets')}", err=True)
        bad = 1
    ctx.exit(1 if bad else 0)


def _parse_key(auth: str | None, proto: str, form: str) -> AuthKey | None:
    if auth is None:
        return None
    if proto == "bgp":
        raise click.UsageError("TCP MD5 signs segments: a capture of BGP is decoded without a key")
    if form != "packet":
        raise click.UsageError("--auth requires --form packet: only packets are authenticated")
    try:
        return parse_auth(auth, proto)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--auth") from error


def _documents(
    source: str, proto: str, form: str, key: AuthKey | None, *, reencode: bool
) -> Iterator[Json]:
    if source == "-":
        for line in sys.stdin:
            if line.strip() and not line.lstrip().startswith("#"):
                yield _from_hex(line, proto, form, key, reencode=reencode)
    elif _HEX_DIGITS.issuperset(source.translate(_HEX_NOISE)):
        yield _from_hex(source, proto, form, key, reencode=reencode)
    elif not Path(source).is_file():
        raise click.UsageError(
            f"{source!r} is neither hexadecimal nor a file; give hex digits, - or a pcap file"
        )
    elif form != "packet":
        raise click.UsageError("a capture contains packets: omit --form")
    else:
        yield from _from_capture(Path(source), proto, key, reencode=reencode)


def _from_hex(text: str, proto: str, form: str, key: AuthKey | None, *, reencode: bool) -> Json:
    """Decode hexadecimal text; from the first other character on it is a truncated packet."""
    digits = text.translate(_HEX_NOISE)
    good = next((i for i, c in enumerate(digits) if c not in _HEX_DIGITS), len(digits))
    if good != len(digits) or good % 2:
        what = "an odd number of hex digits" if good == len(digits) else "not a hex digit"
        error = DecodeError("truncated", good // 2, what)
        return {"format": "fared-decode/1", "proto": proto, "form": form, **failure(error)}
    document: Json = _decoder(proto).decode_document(
        bytes.fromhex(digits), form, key=key, reencode=reencode
    )
    return document


def _decoder(proto: str) -> Any:  # noqa: ANN401 - a module
    """Return the module that decodes the packets of a protocol."""
    return importlib.import_module(f"fared.extensions.offline.{proto}.decode")


def _from_capture(path: Path, proto: str, key: AuthKey | None, *, reencode: bool) -> Iterator[Json]:
    try:
        yield from _decoder(proto).capture_documents(path, key=key, reencode=reencode)
    except CaptureError as error:
        raise Failure(str(error)) from error


def _print(document: Json, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(document, allow_nan=False))
        return
    if "frame" in document:
        click.echo("frame {frame}  {time:.6f}  {source} > {destination}".format(**document))
    if not document["ok"]:
        error = document["error"]
        click.echo(
            f"malformed ({error['code']}) at byte {error['offset']}: {error['message']}", err=True
        )
        return
    skipped = ("format", "proto", "form", "ok", "frame", "time", "source", "destination")
    shown = {name: value for name, value in document.items() if name not in skipped}
    click.echo("\n".join(_text_lines(shown, "")))


def _text_lines(value: Json, indent: str) -> Iterator[str]:
    """Format as indented text: plain lists on one line, records one below the other."""
    for name, item in value.items():
        if item is None or item == []:
            continue
        if isinstance(item, dict):
            yield f"{indent}{name}:"
            yield from _text_lines(item, indent + "  ")
        elif isinstance(item, list) and isinstance(item[0], dict):
            yield f"{indent}{name}:"
            for record in item:
                lines = _text_lines(record, indent + "    ")
                first = next(lines, "")
                yield f"{indent}  - {first.lstrip()}"
                yield from lines
        elif isinstance(item, list):
            yield f"{indent}{name}: {', '.join(map(str, item))}"
        else:
            yield f"{indent}{name}: {item}"
