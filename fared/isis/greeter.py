"""When hellos leave: periodically with jitter, and at once when something changed.

Quick ones are what makes an adjacency come up in round trips and not in hello intervals. They
have an allowance, so that nobody can make us send more than a few a second: a hello that is
over it moves the next periodic one forward instead.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fared.isis.adjacency import all_adjacencies
from fared.isis.checks import levels_on
from fared.isis.circuit import Circuit, LanLevel
from fared.isis.greeting import hello_interval, lan_hello, p2p_hello, padded
from fared.isis.ids import Level
from fared.isis.instance import Instance
from fared.isis.pdu.model import LanHello, P2pHello
from fared.isis.transmit import Transmitter

_QUICK_GAP = 0.25
"""Seconds after which one more quick hello is allowed."""
_QUICK_BURST = 4


def voices(circuit: Circuit) -> tuple[Level | None, ...]:
    """What a circuit sends hellos for: each level of a LAN, or once for both (None)."""
    return tuple(sorted(circuit.lan)) if circuit.broadcast else (None,)


class Greeter:
    """Sends the hellos of all circuits. ``level`` is None on point-to-point circuits."""

    def __init__(self, instance: Instance, transmitter: Transmitter) -> None:
        self._instance = instance
        self._transmitter = transmitter

    def start(self, circuit: Circuit, level: Level | None) -> None:
        """Send the first hello, as soon as allowed, and then the others."""
        self._arm(circuit, level, self._instance.now + hello_interval(circuit, level))
        self.hurry(circuit, level)

    def stop(self, circuit: Circuit, level: Level | None) -> None:
        """Say goodbye if the link still carries frames, and send no more."""
        holder = _holder(circuit, level)
        if holder.hello_timer is None:
            return
        self._instance.timers.cancel(holder.hello_timer)
        holder.hello_timer = None
        if circuit.link.up:
            self._farewell(circuit, level)

    def hurry(self, circuit: Circuit, level: Level | None) -> None:
        """Send a hello now, or as soon as the allowance has room for it."""
        holder = _holder(circuit, level)
        if holder.hello_timer is None:
            return
        due = holder.hello_credit - _QUICK_BURST * _QUICK_GAP
        if due <= self._instance.now:
            self._send(circuit, level)
        elif not holder.hello_timer.active or due < holder.hello_timer.deadline:
            self._arm(circuit, level, due)

    def hurry_all(self, circuit: Circuit) -> None:
        """The same for all levels."""
        for level in voices(circuit):
            self.hurry(circuit, level)

    def _farewell(self, circuit: Circuit, level: Level | None) -> None:
        """Tell neighbors that we hear them no more, so that they need not wait for it.

        RFC 5303 and §8.4.2 take a neighbor that hears nobody out of state Up. FRR 8.4 does not
        on point-to-point circuits, but lets a holding time of zero expire at once.
        """
        instance = self._instance
        if level is not None:
            lan = replace(lan_hello(instance, circuit, level, ()), holding_time=0)
            self._transmitter.send_hello(circuit, lan)
        elif levels_on(instance, circuit):
            p2p = replace(p2p_hello(instance, circuit, None), holding_time=0)
            self._transmitter.send_hello(circuit, p2p)

    def _send(self, circuit: Circuit, level: Level | None) -> None:
        instance = self._instance
        holder = _holder(circuit, level)
        used = max(instance.now, holder.hello_credit) + _QUICK_GAP
        holder.hello_credit = min(used, instance.now + (_QUICK_BURST + 1) * _QUICK_GAP)
        interval = instance.jitter(hello_interval(circuit, level))
        self._arm(circuit, level, instance.now + interval)
        if not levels_on(instance, circuit):
            return
        hello: LanHello | P2pHello
        if level is None:
            known = all_adjacencies(circuit)
            hello = p2p_hello(instance, circuit, circuit.adjacency)
        else:
            heard = circuit.lan[level].adjacencies
            known = list(heard.values())
            hello = lan_hello(instance, circuit, level, tuple(sorted(heard)))
        settled = bool(known) and all(adjacency.up for adjacency in known)
        if circuit.settings.hello_padding and not settled:
            hello = padded(circuit, hello, self._transmitter.hello_key(circuit))
        self._transmitter.send_hello(circuit, hello)

    def _arm(self, circuit: Circuit, level: Level | None, due: float) -> None:
        holder = _holder(circuit, level)
        self._instance.timers.cancel(holder.hello_timer)
        holder.hello_timer = self._instance.timers.arm(due, partial(self._send, circuit, level))


def _holder(circuit: Circuit, level: Level | None) -> Circuit | LanLevel:
    """Where the timer and the allowance are kept."""
    return circuit if level is None else circuit.lan[level]
