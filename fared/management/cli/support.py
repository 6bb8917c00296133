"""``fared-cli tech-support``: all that a bug report needs, in one tar.

The documents of the daemon, its log, the state of the kernel and the versions, none of which has
authentication keys; a recording, which has, only if it is asked for. The tar is made without a
daemon, too, since its absence may be what is reported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from fared.management.cli.session import Failure, Json, Session, Unreachable, once_options, tell
from fared.management.cli.support_tar import Archive, kernel_members, version_members
from fared.management.documents import human
from fared.management.documents.registry import all_documents


@click.command("tech-support")
@click.argument("file", metavar="[FILE.tar.gz]", required=False, type=click.Path(dir_okay=False))
@click.option(
    "--recording",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Include the recording in this directory, which has packets and keys.",
)
@once_options
@click.pass_obj
def tech_support(session: Session, file: str | None, recording: str | None) -> None:
    """Write all that a bug report needs into one tar: documents, log, kernel, versions.

    It has no keys, unless a recording is included. Without FILE its name has host and time. With
    --json the documents of the daemon alone are printed.
    """
    if session.as_json:
        if file is not None or recording is not None:
            raise click.UsageError("--json prints the documents of the daemon, and writes no tar")
        session.print(gather(session))
        return
    unreachable = _write(session, Path(file or _default_name()), recording)
    if recording is not None:
        tell("the recording holds authentication keys: give it to nobody who must not have them")
    if unreachable is not None:
        raise unreachable


def _write(session: Session, path: Path, recording: str | None) -> Unreachable | None:
    """Write the tar and print its name; return why it has no documents. Raises Failure."""
    try:
        with Archive(path, _default_name().removesuffix(".tar.gz")) as archive:
            unreachable = _add_documents(session, archive)
            for name, content in (*kernel_members(session.socket), *version_members()):
                archive.add(name, content)
            if recording is not None:
                archive.add_recording(Path(recording))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}", "name another FILE") from error
    sys.stdout.write(f"{path}\n")
    return unreachable


def _add_documents(session: Session, archive: Archive) -> Unreachable | None:
    """Add what the daemon tells; return why it tells nothing."""
    try:
        found = gather(session)
    except Unreachable as unreachable:
        archive.add_json("error.json", {"error": unreachable.message})
        return unreachable
    archive.add_json("tech-support.json", found)
    documents = found["documents"]
    archive.add_json("config.json", documents["config"])
    archive.add_lines("log.jsonl", documents["log"].get("lines", []))
    return None


def _default_name() -> str:
    import socket  # noqa: PLC0415 - for one name

    at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"fared-{socket.gethostname()}-{at}.tar.gz"


def gather(session: Session) -> Json:
    """Collect all documents; the reason replaces one that is unavailable.

    Raises Failure if even the status is unavailable.
    """
    documents: Json = {"status": session.ask("show status")}
    wanted = dict(_wanted(documents["status"]))
    for proto in _others(documents["status"]):
        wanted[f"lsdb {proto}"] = ("show lsdb", {"proto": proto})
    for key, (command, args) in wanted.items():
        if key not in documents:
            documents[key] = _had(session, command, args)
    return {"format": "fared-tech-support/1", "at": time.time(), "documents": documents}


def _others(status: Json) -> list[str]:
    """Return the running protocols besides the one that is shown by default."""
    return [proto for proto in human.PROTOCOLS if status.get(proto)][1:]


def _wanted(status: Json) -> Iterator[tuple[str, tuple[str, Json]]]:
    """Yield all documents without required arguments, and their variants by flag."""
    for document in all_documents():
        if document.proto and not status.get(document.proto):
            continue
        if any(argument.required for argument in document.args):
            continue
        yield document.name, (document.command, {})
        for argument in document.args:
            if argument.kind == "flag" or argument.name == "saved":
                yield f"{document.name} {argument.name}", (document.command, {argument.name: True})
    yield "config-history", ("config-history", {})


def _had(session: Session, command: str, args: Json) -> Json:
    try:
        return session.ask(command, args)
    except Failure as failure:
        return {"error": failure.message}
