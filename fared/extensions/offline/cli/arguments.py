"""Arguments of ``spf`` and of plans: nodes, links and values, with hints after mistakes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import click
import msgspec

from fared.core import link_text
from fared.core.ids import NodeId, format_node
from fared.core.link_text import LinkText
from fared.core.units import parse_bandwidth, parse_duration
from fared.extensions.offline.changes import Changes, Direction
from fared.extensions.offline.world import World
from fared.paths.rib.settings import SolverSettings
from fared.paths.weights.path_capacity import WeightMode

V = TypeVar("V")
_SHOWN = 8


class WhatIf(msgspec.Struct, frozen=True):
    """The options of changes as given."""

    fail_links: tuple[str, ...]
    fail_nodes: tuple[str, ...]
    costs: tuple[str, ...]
    bandwidths: tuple[str, ...]
    overloads: tuple[str, ...]

    def described(self) -> list[str]:
        """Return the options as text, as they were written."""
        named = (
            ("fail-link", self.fail_links),
            ("fail-node", self.fail_nodes),
            ("set-cost", self.costs),
            ("set-bandwidth", self.bandwidths),
            ("overload", self.overloads),
        )
        return [f"{name} {value}" for name, values in named for value in values]


def solver_settings(
    *,
    max_paths: int,
    weights: str,
    flows: int | None,
    max_weight: int,
    max_group_size: int | None,
    delay_margin: str | None,
    delay_bound: str | None,
    unknown_delay: str | None,
) -> SolverSettings:
    """Return the settings of the options. Raises click.UsageError."""
    return SolverSettings(
        max_paths=max_paths,
        mode=WeightMode(weights),
        flows=flows,
        max_weight=max_weight,
        max_group_size=max_group_size,
        delay_margin=_time("--delay-margin", delay_margin),
        delay_bound=_time("--delay-bound", delay_bound),
        unknown_delay=_time("--unknown-delay", unknown_delay) or 0.0,
    )


def _time(option: str, text: str | None) -> float | None:
    """Return seconds; None without. Raises UsageError."""
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        expected = f"expected a duration such as 5ms, got {text!r}"
        raise click.UsageError(f"{option}: {expected}") from error


class Names:
    """Finds routers of a database by router id, system id or hostname, and networks by id."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._by_name: dict[str, list[NodeId]] = {}
        for node in world.nodes:
            self._by_name.setdefault(format_node(node), []).append(node)
        for node, name in sorted(world.hostnames.items()):
            known = self._by_name.setdefault(name, [])
            if node not in known:
                known.append(node)

    def node(self, text: str, option: str) -> NodeId:
        """Return the node of this name. Raises click.BadParameter with the nearest name."""
        found = self._by_name.get(text.strip(), [])
        if len(found) == 1:
            return found[0]
        if found:
            same = ", ".join(map(format_node, found))
            raise click.BadParameter(f"{text!r} is the name of {same}", param_hint=option)
        message = f"no router {text!r} in the database; {self.near(text)}"
        raise click.BadParameter(message, param_hint=option)

    def knows(self, text: str) -> bool:
        """Whether a node has this name."""
        return text in self._by_name

    def near(self, text: str) -> str:
        """Return the name that an unknown one is like, or those that there are."""
        near = difflib.get_close_matches(text, self._by_name, n=1, cutoff=0.5)
        return f"did you mean {near[0]!r}?" if near else f"known: {_some(self._by_name)}"

    def links(self, text: str, option: str, *, directed: bool = False) -> list[Direction]:
        """Return the links of ``A-B`` in the graph, from A.

        They are the links between A and B that at least one of them lists (``directed``: A; both of
        them, if ``A > B`` was not written), and A's link into each LAN that both are on. Raises
        click.BadParameter.
        """
        ends = self._ends(text, option)
        found = self._from(ends.tail, ends.head, option, directed=directed)
        if directed and ends.both:
            found += self._from(ends.head, ends.tail, option, directed=True)
        return found

    def _ends(self, text: str, option: str) -> LinkText:
        try:
            return link_text.read(text, self._by_name)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint=option) from error

    def _from(self, a: str, b: str, option: str, *, directed: bool) -> list[Direction]:
        tail, head = self.node(a, option), self.node(b, option)
        near, far = self._neighbors(tail), self._neighbors(head)
        found: list[Direction] = [
            (tail, lan) for lan in sorted(near & far) if self.world.is_network(lan)
        ]
        if head in near or (not directed and tail in far):
            found.insert(0, (tail, head))
        if not found:
            names = [self._shown(node) for node in sorted(near)]
            raise click.BadParameter(
                f"no link between {a} and {b}; {a} has links to {_some(names) or 'no router'}",
                param_hint=option,
            )
        return found

    def value(
        self, text: str, option: str, read: Callable[[str], V], what: str
    ) -> dict[Direction, V]:
        """Parse ``A-B=VALUE``; return values by link. Raises click.BadParameter."""
        link, equals, value = text.rpartition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not A-B={what}", param_hint=option)
        try:
            parsed = read(value)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint=option) from error
        return dict.fromkeys(self.links(link, option, directed=True), parsed)

    def _neighbors(self, node: NodeId) -> set[NodeId]:
        return {
            NodeId(far) for block in self.world.described(node) for far in block.neighbors.tolist()
        }

    def _shown(self, node: NodeId) -> str:
        return self.world.hostnames.get(node) or format_node(node)


def read_changes(names: Names, given: WhatIf) -> Changes:
    """Turn the options into changes. Raises click.BadParameter."""
    failed = [link for text in given.fail_links for link in names.links(text, "--fail-link")]
    cost = partial(_cost, names.world.max_metric)
    costs: dict[Direction, int] = {}
    for text in given.costs:
        costs |= names.value(text, "--set-cost", cost, "N")
    bandwidths: dict[Direction, float] = {}
    for text in given.bandwidths:
        bandwidths |= names.value(text, "--set-bandwidth", parse_bandwidth, "25G")
    return Changes(
        failed_links=frozenset((*failed, *((head, tail) for tail, head in failed))),
        failed_nodes=frozenset(names.node(text, "--fail-node") for text in given.fail_nodes),
        costs=costs,
        bandwidths=bandwidths,
        overloaded=frozenset(names.node(text, "--overload") for text in given.overloads),
    )


def _cost(highest: int, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= highest):
        raise ValueError(f"{text!r} is not a metric: 1..{highest}")
    return int(text)


def _some(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return ", ".join(known[:_SHOWN]) + more
