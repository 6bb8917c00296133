"""Messages between the daemon and the BFD process, over a pair of SOCK_SEQPACKET sockets.

One message a packet, encoded with MessagePack. The first one of each side has ``VERSION``: the
daemon may be upgraded while a process of the former version still runs.
"""

from __future__ import annotations

import msgspec

from fared.core.bfd import SessionSettings
from fared.protocols.bfd.packet import State
from fared.protocols.bfd.session import SessionCounters

VERSION = 1
REPORTED_AT_ONCE = 64
"""Sessions in a ``Report`` at most; several follow one another."""


class SessionKey(msgspec.Struct, frozen=True, array_like=True):
    """A session: the interface, and the neighbor's address, of 4 or 16 bytes."""

    ifindex: int
    remote: bytes


# -- from the daemon -----------------------------------------------------------------------------


class OpenSession(msgspec.Struct, frozen=True, tag=True):
    """Run a session from ``local`` (empty: the kernel chooses), or apply other settings to it.

    ``discriminators`` (local, remote): it was up in a former process, and is resumed.
    """

    key: SessionKey
    interface: str
    local: bytes
    settings: SessionSettings
    discriminators: tuple[int, int] | None = None


class CloseSession(msgspec.Struct, frozen=True, tag=True):
    """End a session without a failure."""

    key: SessionKey


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Ask for a ``Report``."""


class Greeting(msgspec.Struct, frozen=True, tag=True):
    """The first message of the daemon."""

    version: int = VERSION


Request = Greeting | OpenSession | CloseSession | Ask

# -- to the daemon -------------------------------------------------------------------------------


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The first message of the process; ``priority`` is that of its scheduling, in words."""

    version: int
    priority: str


class SessionState(msgspec.Struct, frozen=True):
    """State, diagnostic and discriminator at both ends of a session."""

    key: SessionKey
    state: State
    remote_state: State
    diagnostic: int
    remote_diagnostic: int
    local_discr: int
    remote_discr: int


class StateChange(SessionState, frozen=True, tag=True):
    """The state of a session, or that of its neighbor, changed; ``independent``: its C bit."""

    independent: bool = False


class Trouble(msgspec.Struct, frozen=True, tag=True):
    """A log record: packets that were discarded, sockets that could not be opened."""

    level: str
    event: str
    fields: dict[str, str | int]


class SessionReport(SessionState, frozen=True):
    """Intervals in microseconds, ``detection_time`` and ``since`` (its age) in seconds."""

    source_port: int
    since: float
    transmit_interval: float
    detection_time: float
    remote_min_tx: int
    remote_min_rx: int
    remote_mult: int
    counters: SessionCounters


class Report(msgspec.Struct, frozen=True, tag=True):
    """Sessions, and packets without one, by reason; ``last``: no other report follows."""

    sessions: tuple[SessionReport, ...]
    discarded: dict[str, int]
    last: bool


Answer = Ready | StateChange | Trouble | Report
