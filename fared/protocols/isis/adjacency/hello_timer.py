"""When hellos (IIHs) are sent: periodically with jitter, and at once when something changed.

Hellos sent at once bring an adjacency up in round trips instead of hello intervals. Their rate is
limited, whatever neighbors send: a hello beyond the limit moves the next periodic one forward.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from fared.protocols.isis.adjacency.checks import levels_on
from fared.protocols.isis.adjacency.fsm import all_adjacencies
from fared.protocols.isis.adjacency.iih import hello_interval, lan_hello, p2p_hello, padded
from fared.protocols.isis.circuit import Circuit, LanLevel
from fared.protocols.isis.ids import Level
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.model import LanHello, P2pHello
from fared.protocols.isis.reacquisition import T1
from fared.protocols.isis.transmit import Transmitter

_QUICK_GAP = 0.25
"""Seconds after which one more immediate hello is allowed."""
_QUICK_BURST = 4


def hello_levels(circuit: Circuit) -> tuple[Level | None, ...]:
    """The levels that hellos are sent for: each one of a LAN; None, both at once, elsewhere."""
    return tuple(sorted(circuit.lan)) if circuit.broadcast else (None,)


def hello_holder(circuit: Circuit, level: Level | None) -> Circuit | LanLevel:
    """The object that holds timer and limit."""
    return circuit if level is None else circuit.lan[level]


class HelloTimer:
    """Sends the hellos of all circuits. ``level`` is None on point-to-point circuits."""

    def __init__(self, instance: Instance, transmitter: Transmitter) -> None:
        self._instance = instance
        self._process = instance.process
        self._transmitter = transmitter

    def start(self, circuit: Circuit, level: Level | None) -> None:
        """Send the first hello, as soon as allowed, and then the others."""
        self._arm(circuit, level, self._process.now + hello_interval(circuit, level))
        self.send_now(circuit, level)

    def stop(self, circuit: Circuit, level: Level | None) -> None:
        """Send a final hello if the link still carries frames, and stop."""
        holder = hello_holder(circuit, level)
        if holder.hello_timer is None:
            return
        self._process.timers.cancel(holder.hello_timer)
        holder.hello_timer = None
        if circuit.link.up:
            self._send_final(circuit, level)

    def send_now(self, circuit: Circuit, level: Level | None) -> None:
        """Send a hello now, or as soon as the limit allows."""
        holder = hello_holder(circuit, level)
        if holder.hello_timer is None:
            return
        # RFC 8706 §3.3.1: between two requests no hello is sent
        if holder.reacquiring is not None and holder.reacquiring.requesting:
            if not holder.reacquiring.requests:
                self._send(circuit, level)
            return
        due = holder.hello_credit - _QUICK_BURST * _QUICK_GAP
        if due <= self._process.now:
            self._send(circuit, level)
        elif not holder.hello_timer.active or due < holder.hello_timer.deadline:
            self._arm(circuit, level, due)

    def send_now_all(self, circuit: Circuit) -> None:
        """The same for all levels."""
        for level in hello_levels(circuit):
            self.send_now(circuit, level)

    def _send_final(self, circuit: Circuit, level: Level | None) -> None:
        """Send a hello without neighbors and with a holding time of zero.

        ISO 10589 has no final hello. The neighbor leaves state Up when it is no longer listed
        (§8.4.2.5.3) or receives three-way state Down (RFC 5303 §3.2). FRR 8.4 ignores the latter,
        but a holding time of zero expires there at once.
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
        holder = hello_holder(circuit, level)
        used = max(instance.process.now, holder.hello_credit) + _QUICK_GAP
        holder.hello_credit = min(used, instance.process.now + (_QUICK_BURST + 1) * _QUICK_GAP)
        interval, now = hello_interval(circuit, level), instance.process.now
        if holder.reacquiring is not None and holder.reacquiring.requesting:
            holder.reacquiring = holder.reacquiring.requested()
        if holder.reacquiring is not None and holder.reacquiring.requesting:
            self._arm(circuit, level, now + T1)
        else:
            # ISO 10589 §10.1: jitter. From the earliest time on the hello may leave together with
            # those of other circuits, in one wake-up.
            earliest = now + instance.earliest(interval)
            self._arm(circuit, level, now + instance.jitter(interval), earliest)
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
        # RFC 3719 §6: padding may end when the adjacency is up
        settled = bool(known) and all(adjacency.up for adjacency in known)
        if circuit.settings.hello_padding and not settled:
            hello = padded(circuit, hello, self._transmitter.hello_key(circuit))
        self._transmitter.send_hello(circuit, hello)

    def _arm(
        self, circuit: Circuit, level: Level | None, due: float, earliest: float | None = None
    ) -> None:
        holder = hello_holder(circuit, level)
        self._process.timers.cancel(holder.hello_timer)
        send = partial(self._send, circuit, level)
        holder.hello_timer = self._process.timers.arm(due, send, earliest)
