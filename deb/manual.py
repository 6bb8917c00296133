"""Man pages, from the same source as ``--help`` and the JSON schema: they cannot differ from these.

``pages`` returns the pages of a package by file name. Text goes through ``escaped``, so that no
help text is read as a request of roff.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from deb import sample
from fared.config import Reload, json_schema
from fared.config.section import Section
from fared.config.shapes import fields_of
from fared.daemon.main import parser
from fared.extensions.ina.inad.main import parser as ina_parser
from fared.extensions.lab.main import main as lab
from fared.management.cli.main import main as cli

Json = Mapping[str, Any]

_FILES = {
    "/etc/fared/fared.yaml": "The configuration, fared.yaml(5).",
    "/run/fared/fared.sock": "The control socket of fared-cli(1), for members of group fared.",
    "/var/lib/fared": "The boot count of OSPF, and the history of configurations.",
}
_SIGNALS = {
    "SIGHUP": "Reload the configuration; if it has an error, the running one stays in use.",
    "SIGTERM, SIGINT": "Tell neighbors, withdraw the routes (fib: on-exit), and exit.",
    "SIGUSR1, SIGUSR2": "Ignored.",
}
_INA_FILES = {
    "/etc/fared/ina.env": "OPTIONS of the service.",
    "/run/fared-ina/ina.sock": "The socket for operators, members of group fared.",
}
_EXIT = {
    "0": "Clean exit.",
    "1": "It could not run; the message says why.",
    "2": "Bad usage or configuration.",
}


def pages(package: str, example: Path) -> dict[str, str]:
    """Return the man pages of a package; ``example``: the file with all settings."""
    if package == "fared-tools":
        text = "fabrics of routers in network namespaces"
        return {"fared-lab.1": _program(lab, "fared-lab", text)}
    text = "query and control a fared daemon"
    return {
        "fared.8": _daemon(parser(), "link-state routing daemon for AI fabrics", _FARED),
        "fared-ina.8": _daemon(ina_parser(), "in-network aggregation", _INA),
        "fared-cli.1": _program(cli, "fared-cli", text),
        "fared.yaml.5": _configuration(json_schema(), example.read_text("utf-8")),
    }


def escaped(text: str) -> str:
    """Return text in which nothing is a request or an escape of roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", text)
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def _prose(text: str) -> str:
    """Paragraphs of a docstring: words in `` are bold, as everywhere in man pages."""
    paragraphs = (" ".join(part.split()) for part in text.replace("\b", "").split("\n\n"))
    return "\n.PP\n".join(re.sub(r"`+([^`]+)`+", r"\\fB\1\\fR", escaped(p)) for p in paragraphs)


def _head(name: str, section: int, what: str) -> str:
    title = f'.TH "{escaped(name).upper()}" "{section}" "" "fared" "fared manual"'
    return f"{title}\n.SH NAME\n{escaped(name)} \\- {escaped(what)}\n"


def _list(items: Mapping[str, str]) -> str:
    return "".join(f".TP\n.B {escaped(name)}\n{_prose(text)}\n" for name, text in items.items())


_FARED = f".SH SIGNALS\n{_list(_SIGNALS)}.SH FILES\n{_list(_FILES)}"
_INA = f".SH FILES\n{_list(_INA_FILES)}"


def _see(*others: str) -> str:
    return f".SH SEE ALSO\n{escaped(', '.join(others))}\n.PP\n/usr/share/doc/fared/docs\n"


# -- fared(8), fared-ina(8) ------------------------------------------------------------------


def _daemon(made: argparse.ArgumentParser, what: str, more: str) -> str:
    usage = " ".join(made.format_usage().removeprefix("usage: ").split())
    options = {
        ", ".join(action.option_strings) + _metavar(action): _help(made, action)
        for action in made._actions  # noqa: SLF001 - argparse has no other way to list them
    }
    return (
        _head(made.prog, 8, what)
        + f".SH SYNOPSIS\n{escaped(usage)}\n.SH DESCRIPTION\n{_prose(made.description or '')}\n"
        + f".SH OPTIONS\n{_list(options)}{more}.SH EXIT STATUS\n{_list(_EXIT)}"
        + _see("fared-cli(1)", "fared.yaml(5)")
    )


def _metavar(action: argparse.Action) -> str:
    return f" {action.metavar}" if action.metavar else ""


def _help(made: argparse.ArgumentParser, action: argparse.Action) -> str:
    values = {**vars(action), "prog": made.prog}
    return (action.help or "") % values


# -- fared-cli(1), fared-lab(1) --------------------------------------------------------------


def _program(command: click.Command, name: str, what: str) -> str:
    context = click.Context(command, info_name=name)
    parts = [_head(name, 1, what), ".SH SYNOPSIS\n", _usage(command, context)]
    parts += [".SH DESCRIPTION\n", _prose(command.help or ""), "\n", _options(command, context)]
    parts.append(".SH COMMANDS\n")
    parts += [_command(*below) for below in _below(command, context)]
    if command.epilog:
        parts.append(f".SH EXIT STATUS\n{_prose(command.epilog.removeprefix('Exit codes: '))}\n")
    return "".join([*parts, _see("fared(8)", "fared.yaml(5)")])


def _below(
    command: click.Command, context: click.Context
) -> Iterator[tuple[click.Command, click.Context]]:
    """All commands that do something, in the order of ``--help``, except repeated groups."""
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        if found is None or found.hidden:
            continue
        inside = click.Context(found, info_name=name, parent=context)
        goes_below = isinstance(found, click.Group) and not _repeats(context, name)
        if not goes_below or getattr(found, "invoke_without_command", False):
            yield found, inside
        if goes_below:
            yield from _below(found, inside)


def _repeats(context: click.Context, name: str) -> bool:
    """Whether the group is ``show ospf`` or ``show isis``, which have the commands of ``show``."""
    return context.info_name == "show" and name in ("ospf", "isis")


def _command(command: click.Command, context: click.Context) -> str:
    heading = escaped(context.command_path.partition(" ")[2])
    text = _prose(command.help or "")
    return f".SS {heading}\n{_usage(command, context)}.PP\n{text}\n{_parameters(command, context)}"


def _usage(command: click.Command, context: click.Context) -> str:
    pieces = " ".join(command.collect_usage_pieces(context))
    return f".B {escaped(context.command_path)}\n{escaped(pieces)}\n"


def _options(command: click.Command, context: click.Context) -> str:
    return f".SH OPTIONS\n{_parameters(command, context)}"


def _parameters(command: click.Command, context: click.Context) -> str:
    records = (param.get_help_record(context) for param in command.get_params(context))
    known = {} if context.parent is None else _options_of_all(context)
    return _list({names: text for names, text in filter(None, records) if names not in known})


def _options_of_all(context: click.Context) -> set[str]:
    """Options that stand once, at the head: those of the program, and ``--help``."""
    root = context.find_root()
    records = (param.get_help_record(root) for param in root.command.get_params(root))
    return {names for names, _ in filter(None, records)} | {"--help", "-h, --help"}


# -- fared.yaml(5) ---------------------------------------------------------------------------


def _configuration(schema: Json, example: str) -> str:
    """Sections with their keys, in the words of errors, with help from the example; then it."""
    help_of, where = sample.help_of(example), _places()
    parts = [
        _head("fared.yaml", 5, "configuration of fared"),
        ".SH DESCRIPTION\n",
        "The file is YAML, JSON included. Every key is optional unless stated.\n.PP\n",
        _prose(
            "Durations are seconds as a number, or with us, ms, s, m, h. Bandwidths are bits/s as"
            " a number, or with K, M, G, T. ``fared --check`` finds all errors,"
            " ``fared-cli config diff`` shows the effect of a reload: settings change in place,"
            " except those marked ``bounce-adjacency``, whose adjacencies end and form again, and"
            " ``restart-required``."
        ),
        "\n.SH SECTIONS\n",
    ]
    for section in sample.sections():
        definition = schema["$defs"].get(section.__name__, schema)
        if definition is schema:
            parts.append(".SS The whole file\n")
        else:
            parts += [f".SS {escaped(where[section.__name__])}\n", _prose(sample.summary(section))]
            parts.append("\n")
        parts.append(_section(section, definition, help_of, where))
    parts += [
        ".SH EXAMPLE\nAll settings with their defaults:\n.PP\n.EX\n",
        escaped(example),
        ".EE\n",
    ]
    return "".join([*parts, _see("fared(8)", "fared-cli(1)")])


def _places() -> Mapping[str, str]:
    """Return where sections are in the file, by the names that words have for them."""
    found: dict[str, str] = {}
    for section, place in sample.places():
        known = found.get(section.__name__)
        found[section.__name__] = place if known is None else f"{known}, {place}"
    return found


def _section(
    section: type[Section], definition: Json, help_of: sample.Help, where: Mapping[str, str]
) -> str:
    """Return for each key what it must be, its default, the effect of a change, and its help."""
    rows = []
    for key, field in fields_of(section).items():
        default = definition["properties"][key].get("default")
        words = re.sub(r"(?<=section ``)\w+", lambda found: where[found[0]], field.shape.words)
        facts = [words]
        if key in definition.get("required", ()):
            facts.append("required")
        elif default is not None and not isinstance(default, dict):
            facts.append(f"default {_value(default)}")
        if field.reload is not Reload.UPDATE:
            facts.append(field.reload)
        rows.append(f".TP\n.B {escaped(key)}\n{_prose('; '.join(facts))}\n")
        rows.append(f".br\n{_prose(help_of[section, key])}\n")
    return "".join(rows)


def _value(value: object) -> str:
    known = {True: "true", False: "false"}
    return known[value] if isinstance(value, bool) else str(value) or '""'
