"""Decisions, and what neighbors are told of them, in portions: one a turn.

The loop reads packets between turns. While many decisions wait, no session is read.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

from fared.protocols.bgp.instance import BgpInstance
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.pacing import AnnouncePacing
from fared.protocols.bgp.reach import is_derated, link_of, resolver, set_available
from fared.protocols.bgp.rib.adj_out import ExportSettings

if TYPE_CHECKING:
    from fared.core.ids import Prefix

_GROUPS: Final = 50
"""Prefixes, and groups, of a portion."""
_PORTION, _WORK = 5, 50
"""What a portion costs beside its groups, and a turn at most, in groups."""
_GAP: Final = 0.01
"""Seconds from one time at which neighbors are told to the next: a path that is lost is looked for
along ever longer ones, and each of them is another message to all neighbors."""
_DECIDING: Final = 0.05
"""The same while decisions are made."""
_TOLD: Final = 1000
"""Prefixes of which each neighbor is told in a turn."""
_MUCH: Final = 20_000
"""Prefixes that wait for a decision while no session is read."""


class Announcing:
    """Settles the tables, and tells neighbors."""

    def __init__(self, instance: BgpInstance) -> None:
        self._instance = instance
        self._pacing: dict[int, AnnouncePacing] = {}
        self._touched: dict[int, None] = {}
        """Neighbors whose streams may be read no more, or again."""
        self._paused, self._told, self._telling = False, -math.inf, False

    def add(self, neighbor: BgpSpeaker, family: int) -> bool:
        """Begin with a family of a session; False: there is no next hop for it."""
        instance, export = self._instance, self.export_of(neighbor, family)
        if export is None:
            return False
        pacing = self._pacing.get(neighbor.number)
        if pacing is None:
            process = instance.process
            pacing = self._pacing[neighbor.number] = AnnouncePacing(
                process.timers,
                lambda: process.now,
                lambda: instance.settings.advertise,
                partial(self._look_again, neighbor),
            )
        assert neighbor.peer is not None
        link = link_of(instance, neighbor, family)
        derated = is_derated(instance, neighbor)
        rib = instance.ribs[family]
        resolve = resolver(instance, neighbor)
        rib.add(neighbor.peer, link, export, pacing.announces, derated=derated, resolve=resolve)
        set_available(instance, neighbor, family)
        return True

    def end(self, neighbor: BgpSpeaker) -> None:
        """The session is not established any more."""
        neighbor.forget()
        pacing = self._pacing.pop(neighbor.number, None)
        if pacing is not None:
            pacing.stop()

    def touch(self, number: int) -> None:
        """The streams of a neighbor may be read no more, or again."""
        self._touched[number] = None

    def export_of(self, neighbor: BgpSpeaker, family: int) -> ExportSettings | None:
        """Return what a neighbor is told, and how; None: there is no next hop for it."""
        next_hop = neighbor.next_hop(family)
        if next_hop is None:
            return None
        engine, mine = self._instance.settings, neighbor.settings
        return ExportSettings(
            engine.local_as,
            next_hop,
            mine.path_bandwidth.send,
            neighbor.exports,
            mine.export_filters,
            None if engine.drained else mine.min_path_bandwidth,
            engine.drained,
            mine.path_bandwidth.value == "share",
            engine.demand if mine.path_bandwidth.value == "share" else None,
        )

    def export_changed(self, neighbor: BgpSpeaker) -> None:
        """Settings or addresses are others: tell everything anew, if that matters."""
        for family, rib in self._instance.ribs.items():
            out, export = rib.outs.get(neighbor.number), self.export_of(neighbor, family)
            if out is not None and export is not None and out.settings != export:
                rib.export(neighbor.number, export)
                self._instance.wake()

    def _look_again(self, neighbor: BgpSpeaker) -> bool:
        """Consider bandwidths that a neighbor has not been told; whether there are any."""
        outs = [rib.outs.get(neighbor.number) for rib in self._instance.ribs.values()]
        waiting = [out for out in outs if out is not None and out.waiting]
        for out in waiting:
            out.mark_waiting()
        if waiting:
            self._instance.wake()
        return bool(waiting)

    # -- the turn -------------------------------------------------------------------------------

    def settle(self) -> float | None:
        """Do a portion of the work; return when to do the next one."""
        ribs = self._instance.ribs.values()
        deciding = False
        for rib in ribs:
            done = 0
            while done < _WORK and not rib.settled:
                done += _PORTION + rib.settle(_GROUPS)
            deciding |= not rib.settled
        self._pause(paused=any(rib.table.backlog > _MUCH for rib in ribs))
        self._report_reading()
        now = self._instance.process.now
        told = now if deciding else None
        if self._instance.restarting_until is not None:
            return told
        if not self._telling:
            earliest = self._told + (_DECIDING if deciding else _GAP)
            if now < earliest:
                return told if deciding or not self._due() else earliest
        self._telling = False
        for neighbor in self._instance.up():
            self._telling |= self._tell(neighbor, complete=not (deciding or self._telling))
        return now if self._telling else told

    def _due(self) -> bool:
        """Whether a neighbor has to be told something."""
        ribs = self._instance.ribs.items()
        return any(
            rib.outs[one.number].due or family in one.untold
            for one in self._instance.up()
            for family, rib in ribs
            if one.number in rib.outs
        )

    def _tell(self, neighbor: BgpSpeaker, *, complete: bool) -> bool:
        """Tell a neighbor a portion; return whether more can be told."""
        if neighbor.blocked and not neighbor.flush():
            return False
        more = False
        for family, rib in self._instance.ribs.items():
            out = rib.outs.get(neighbor.number)
            if out is None or neighbor.blocked:
                continue
            if out.due:
                self._told = self._instance.process.now
                large = neighbor.tell(out, rib.table, _TOLD)
                self._say_large(neighbor, large)
            if out.due:
                more |= not neighbor.blocked
            elif family in neighbor.untold and not neighbor.blocked:
                # after the first table, which is complete only if nothing waits for a decision
                if complete:
                    neighbor.tell_end(family)
                else:
                    more = True
        return more

    def _say_large(self, neighbor: BgpSpeaker, prefixes: tuple[Prefix, ...]) -> None:
        process = self._instance.process
        if prefixes and process.may_log(neighbor.number, "too-large"):
            name, first, count = neighbor.name, str(prefixes[0]), len(prefixes)
            process.log("warning", "bgp-route-too-large", neighbor=name, prefix=first, count=count)

    def _pause(self, *, paused: bool) -> None:
        if paused == self._paused:
            return
        self._paused = paused
        for neighbor in self._instance.neighbors.values():
            if neighbor.session is not None:
                neighbor.session.pause(paused=paused)
                self.touch(neighbor.number)

    def _report_reading(self) -> None:
        """Have streams read no more, or again."""
        instance = self._instance
        touched, self._touched = self._touched, {}
        for number in touched:
            neighbor = instance.neighbors.get(number)
            for output in () if neighbor is None else neighbor.reading():
                instance.process.emit(output)
