"""Functions that build a document in slices: generators that yield where they may pause.

What a peer has sent decides how long a table is, and a table of a large fabric takes longer than a
neighbor may wait. ``Responder`` resumes such a function once in each turn of the event loop;
whoever calls it like any other function gets its value at once. Between two slices the router goes
on: what is iterated over must be a copy, of references that is, or frozen.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import islice
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")
R_co = TypeVar("R_co", covariant=True)
Work = Generator[Any, Any, T]
"""Yields where it may pause, and returns a value; or yields a call to be made in a thread, of which
it is sent the result (``beside``)."""
PORTION = 512
"""Entries of a table that are looked at between two pauses, in about a millisecond."""


class Sliced(Generic[P, R_co]):
    """A function whose ``work`` is done in slices."""

    def __init__(self, work: Callable[P, Work[R_co]]) -> None:
        self.work = work
        functools.update_wrapper(self, work)

    def __call__(self, *args: P.args, **named: P.kwargs) -> R_co:
        """Do all the work at once."""
        return finished(self.work(*args, **named))


def finished(work: Work[T]) -> T:
    """Do work to its end, without a pause."""
    result = None
    while True:
        try:
            step = work.send(result)
        except StopIteration as done:
            value: T = done.value
            return value
        result = None if step is None else step()


def beside(call: Callable[[], T]) -> Work[T]:
    """Make a call in a thread, on frozen values; return its result."""
    result: T = yield call
    return result


def chosen(items: Iterable[T], wanted: Callable[[T], bool]) -> Work[list[T]]:
    """Return the items that are wanted."""
    found: list[T] = []
    for number, item in enumerate(items):
        if number % PORTION == 0:
            yield
        if wanted(item):
            found.append(item)
    return found


def in_order(items: Sequence[T], key: Callable[[T], Any]) -> Work[list[T]]:
    """Return the items, sorted."""
    runs: list[list[T]] = []
    for begin in range(0, len(items), PORTION):
        runs.append(sorted(items[begin : begin + PORTION], key=key))
        yield
    if len(runs) < 2:
        return runs[0] if runs else []
    merged, found = heapq.merge(*runs, key=key), list[T]()
    while portion := list(islice(merged, PORTION)):
        found += portion
        yield
    return found


def each(items: Iterable[T], build: Callable[[T], U], portion: int = PORTION) -> Work[list[U]]:
    """Return what is built of each item, with a pause after each portion."""
    built: list[U] = []
    for number, item in enumerate(items, 1):
        built.append(build(item))
        if number % portion == 0:
            yield
    return built
