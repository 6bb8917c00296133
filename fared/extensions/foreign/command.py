"""``fared-cli config import FILE``: a configuration of FRR or BIRD as one of fared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from fared.config.files import read_regular
from fared.config.hints import foreign
from fared.extensions.foreign.bird.parse import BirdError
from fared.extensions.foreign.bird.read import read_bird
from fared.extensions.foreign.draft import Draft
from fared.extensions.foreign.frr.read import read_frr
from fared.extensions.foreign.machine import Machine, machine_of
from fared.extensions.foreign.write import sorted_remarks, write_draft
from fared.kernel.present import read_present
from fared.management.cli import values
from fared.management.cli.session import Failure, Mistake, Session, once_options

_MAX_FILE: Final = 4 << 20
_MAKES: Final = (
    "import reads frr.conf, ospfd.conf, isisd.conf or bgpd.conf of FRR, and bird.conf of BIRD 2;"
    " 'fared-cli config template leaf' writes a file for this machine"
)
_ELSEWHERE: Final = "an existing file stays as it is: choose another name, and compare"
_SECRET_MODE: Final = 0o600
_MODE: Final = 0o644


@click.command("import")
@click.argument("file", shell_complete=values.files)
@click.option("--output", metavar="FILE", help="Write it there, instead of to stdout.")
@once_options
@click.pass_obj
def import_file(session: Session, file: str, output: str | None) -> None:
    """Write a configuration from FILE, which is one of FRR or of BIRD 2.

    Lines that it does not take are comments at its end, and on stderr. It has the keys of FILE.
    """
    path = Path(file)
    make, draft = _read(path)
    text = draft.settle(lambda: write_draft(draft, path.name, make))
    remarks = [("different", each) for each in sorted_remarks(draft.differs)]
    remarks += [("not taken", each) for each in sorted_remarks(draft.left)]
    if session.as_json:
        session.print(_document(draft, make, text))
    else:
        for what, remark in remarks:
            click.echo(f"{what}: {remark}", err=True)
    if not draft.protocols:
        raise Failure(f"{file}: nothing in it runs OSPF, IS-IS or BGP", _MAKES)
    if output is not None:
        _write(Path(output), text)
    elif not session.as_json:
        click.echo(text, nl=False)


def _read(path: Path) -> tuple[str, Draft]:
    """Return whose file it is, and what is taken of it. Raises Failure."""
    try:
        text = _text(path)
        make = foreign(text)
        if make == "FRR":
            return make, read_frr(text, _machine())
        if make == "BIRD":
            return make, read_bird(text, path, _text)
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"{path}: {getattr(error, 'strerror', None) or error}", _MAKES) from None
    except BirdError as error:
        raise Mistake(f"{path}: {error}", _MAKES) from None
    whose = f"a configuration of {make}" if make else "a configuration of neither FRR nor BIRD"
    raise Mistake(f"{path}: {whose}", _MAKES)


def _text(path: Path) -> str:
    content, _ = read_regular(path, _MAX_FILE + 1)
    if len(content) > _MAX_FILE:
        raise OSError(0, f"larger than {_MAX_FILE >> 20} MB")
    return content.decode()


def _machine() -> Machine:
    try:
        return machine_of(read_present())
    except OSError:  # no netlink: as on another machine
        return {}


def _document(draft: Draft, make: str, text: str) -> dict[str, object]:
    def listed(name: str) -> list[dict[str, object]]:
        return [
            {
                "file": remark.source.file or None,
                "line": remark.source.number,
                "text": remark.source.shown,
                "reason": remark.reason,
            }
            for remark in sorted_remarks(getattr(draft, name))
        ]

    return {
        "format": "fared-config-import/1",
        "make": make,
        "config": text,
        "different": listed("differs"),
        "not_taken": listed("left"),
    }


def _write(path: Path, text: str) -> None:
    """Write a new file; with keys in it only its owner may read it."""
    secret = any(line.strip().startswith("key:") or "key: " in line for line in text.splitlines())
    try:
        descriptor = os.open(
            path,
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
            _SECRET_MODE if secret else _MODE,
        )
        with os.fdopen(descriptor, "w", encoding="utf-8") as target:
            target.write(text)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", _ELSEWHERE) from None
