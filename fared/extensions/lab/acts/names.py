"""The acts by name, with a sentence each: cheap to import, for the command line.

An act is a module of this package of that name: ``prepared`` returns the topology that it needs,
and ``play`` plays it on a stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from fared.extensions.lab.labels import BGP
from fared.extensions.lab.topology import LabTopology

ACTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "elephant": "one TCP connection over all paths: by flow, by flowlet and by packet",
        "tenant": "another tenant fills most of a link: weights follow what is left",
        "spines": "only leaves are adaptive: weights and shares stay the same",
    }
)


if TYPE_CHECKING:
    _Type = click.ParamType[str]
else:
    _Type = click.ParamType  # in click 8.1, which Debian and Ubuntu have, it has no parameters


class ActName(_Type):
    """The name of an act; another word is refused with all acts, a sentence each."""

    name = "act"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        if value not in ACTS:
            listed = "\n".join(f"  {name:<10}{sentence}" for name, sentence in ACTS.items())
            self.fail(f"no act {value!r}; there are\n{listed}", param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete names, with their sentences."""
        _ = ctx, param
        return [
            CompletionItem(name, help=sentence)
            for name, sentence in ACTS.items()
            if name.startswith(incomplete)
        ]


def refuse(topology: LabTopology, act: str, as_kind: str | None) -> None:
    """Raise UsageError for a fabric that an act is not for.

    Acts change settings of fared, so no other daemons may route.
    """
    for node in topology.nodes.values():
        kind = as_kind or node.kind
        if node.is_router and kind != "fared":
            raise click.UsageError(
                f"act {act}: all routers must run fared, {node.name} runs {kind}"
            )
        if act == "tenant" and node.is_router and node.protocol == BGP:
            raise click.UsageError(f"act {act}: by BGP no address leads through one spine only")
