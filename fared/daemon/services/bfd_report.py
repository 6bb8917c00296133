"""The document of ``show bfd``, from what the BFD process last reported."""

from __future__ import annotations

import socket

import msgspec

from fared.core.bfd import MICROSECONDS, BfdWanted
from fared.daemon.services.bfd import BfdClient, shortest
from fared.management.documents.bfd import Bfd, BfdProcessFacts, BfdSessionEntry
from fared.protocols.bfd.messages import SessionKey, SessionReport
from fared.protocols.bfd.packet import diagnostic_label


def bfd_document(client: BfdClient, now: float) -> Bfd:
    """Return all wanted sessions, by interface; those without a report yet are left out.

    The next document, as with ``--watch``, will have new counters.
    """
    supervisor = client.supervisor
    supervisor.refresh()
    entries = [
        _entry(key, users, client.reports[key])
        for key, users in client.sessions().items()
        if key in client.reports
    ]
    return Bfd(
        process=BfdProcessFacts(
            pid=supervisor.pid,
            spare=supervisor.spare_pid,
            priority=supervisor.priority,
            starts=supervisor.starts,
            reported=now - supervisor.reported_at if supervisor.reported_at else None,
        ),
        discarded=client.discarded,
        sessions=sorted(entries, key=lambda entry: (entry.interface, entry.neighbor)),
        detail=False,
    )


def _entry(key: SessionKey, users: dict[str, BfdWanted], report: SessionReport) -> BfdSessionEntry:
    settings, counters = shortest(users), report.counters
    first = next(iter(users.values()))
    return BfdSessionEntry(
        interface=first.interface,
        neighbor=_address(key.remote),
        local=_address(first.local),
        protocols=sorted(users),
        state=report.state.label,
        neighbor_state=report.remote_state.label,
        diagnostic=diagnostic_label(report.diagnostic),
        neighbor_diagnostic=diagnostic_label(report.remote_diagnostic),
        since=report.since,
        strict=any(wanted.strict for wanted in users.values()),
        authenticated=settings.key is not None,
        local_discriminator=report.local_discr,
        neighbor_discriminator=report.remote_discr,
        source_port=report.source_port,
        transmit_interval=report.transmit_interval,
        detection_time=report.detection_time,
        min_tx=settings.min_tx / MICROSECONDS,
        min_rx=settings.min_rx / MICROSECONDS,
        multiplier=settings.multiplier,
        neighbor_min_tx=report.remote_min_tx / MICROSECONDS,
        neighbor_min_rx=report.remote_min_rx / MICROSECONDS,
        neighbor_multiplier=report.remote_mult,
        **msgspec.structs.asdict(counters),
    )


def _address(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address)
