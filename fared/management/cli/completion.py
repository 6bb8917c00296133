"""``completion``: the script by which TAB in a shell completes a program's words and values.

Both ``fared-cli`` and ``fared-lab`` have it. click writes the script, and answers the shell.
"""

from __future__ import annotations

import click

_HELP = """\
Print what makes TAB complete commands and values in a shell.

The Debian package has it already. Else, bash and zsh: add eval "$({program} completion bash)"
to the shell's start-up file; fish: write it to ~/.config/fish/completions/{program}.fish.
"""


def completion_of(commands: click.Group, program: str) -> click.Command:
    """Return the command for a program of these commands."""

    @click.command("completion", help=_HELP.format(program=program))
    @click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
    def completion(shell: str) -> None:
        from click.shell_completion import get_completion_class  # noqa: PLC0415 - only here

        kind = get_completion_class(shell)
        assert kind is not None
        variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
        script = kind(commands, {}, program, variable)
        click.echo(script.source_template % script.source_vars())

    return completion
