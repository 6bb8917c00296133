"""Dynamic flooding of all areas or levels of a protocol: its states, and when each is computed.

``igp.dynamic_flooding`` is one area or level. The protocols read LSAs and LSPs into it, and bring
the ends of a link together that has come into the topology.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from fared.core.timers import Timer
from fared.protocols.igp.dynamic_flooding import AddedLink, DynamicFlooding, TopologyView
from fared.protocols.igp.process import Process

Scope = TypeVar("Scope", bound=int)
"""An area id, or a level."""
Added = Callable[[Scope, Mapping[int, AddedLink]], None]


class FloodingScopes(Generic[Scope]):
    """The state and the timer of each area or level that takes part.

    ``own`` is the id of this router. ``added`` is called after each computation, with the links to
    neighbors that have come into the topology, by neighbor.
    """

    def __init__(self, process: Process[Any], own: int, added: Added[Scope]) -> None:
        self._process = process
        self._own = own
        self._added = added
        self._timers: dict[Scope, Timer] = {}
        self.states: dict[Scope, DynamicFlooding] = {}

    def state(self, scope: Scope) -> DynamicFlooding:
        """The state of an area or level, which takes part from now on."""
        state = self.states.get(scope)
        if state is None:
            state = self.states[scope] = DynamicFlooding(self._own)
        return state

    def views(self) -> tuple[TopologyView, ...]:
        """The topologies, in order."""
        return tuple([state.view(scope) for scope, state in sorted(self.states.items())])

    def clear(self) -> None:
        """No area or level takes part any more."""
        self.states.clear()
        for timer in self._timers.values():
            self._process.timers.cancel(timer)
        self._timers.clear()

    def arm(self, scope: Scope) -> None:
        """Compute the topology when it is due, if it is."""
        due = self.states[scope].due() if scope in self.states else None
        timer = self._timers.get(scope)
        if due is None or (timer is not None and timer.active and timer.deadline <= due):
            return
        self._process.timers.cancel(timer)
        self._timers[scope] = self._process.timers.arm(due, partial(self._compute, scope))

    def _compute(self, scope: Scope) -> None:
        state, now = self.states[scope], self._process.now
        due = state.due()
        if due is not None and due <= now:
            self._added(scope, {link.neighbor: link for link in state.compute(now)})
        self.arm(scope)
