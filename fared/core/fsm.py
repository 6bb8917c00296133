"""Finite state machines as tables, so that a reader can hold one against its RFC row by row.

A row says: in these states, on this event, run this action and go to this state. The action
is a name (an enum member), not a function: the table stays a constant that can be printed
and tested, and whoever owns the machine maps names to what they do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)
E = TypeVar("E", bound=Hashable)
A = TypeVar("A", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Row(Generic[S, E, A]):
    """One row of the RFC's table. ``target`` None: the action decides the new state."""

    states: tuple[S, ...]
    event: E
    action: A | None
    target: S | None


@dataclass(frozen=True, slots=True)
class Transition(Generic[S, A]):
    """What one event does in one state."""

    action: A | None
    target: S | None


class TransitionTable(Generic[S, E, A]):
    """Rows indexed by (state, event). An event without a row in a state is ignored there."""

    __slots__ = ("_transitions",)

    def __init__(self, rows: Iterable[Row[S, E, A]]) -> None:
        """Raises ValueError if two rows claim one (state, event)."""
        self._transitions: dict[tuple[S, E], Transition[S, A]] = {}
        for row in rows:
            for state in row.states:
                if (state, row.event) in self._transitions:
                    raise ValueError(f"two rows for {state} on {row.event}")
                self._transitions[state, row.event] = Transition(row.action, row.target)

    def find(self, state: S, event: E) -> Transition[S, A] | None:
        """Look up what ``event`` does in ``state``."""
        return self._transitions.get((state, event))

    def __iter__(self) -> Iterator[tuple[S, E]]:
        return iter(self._transitions)
