"""Finite state machines as tables that can be compared with their RFC row by row.

A row says: in these states, on this event, run this action and enter this state. The action is a
name (an enum member), not a function: the table is a constant that can be printed and tested, and
the owner of the machine maps names to functions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

S = TypeVar("S", bound=Hashable)
E = TypeVar("E", bound=Hashable)
A = TypeVar("A", bound=Hashable)


class Row(msgspec.Struct, Generic[S, E, A], frozen=True):
    """One row of the RFC's table. ``target`` None: the action decides the new state."""

    states: tuple[S, ...]
    event: E
    action: A | None
    target: S | None


class Transition(msgspec.Struct, Generic[S, A], frozen=True):
    """The action and target state of one event in one state."""

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
