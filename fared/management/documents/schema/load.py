"""The document of measured loads."""

from __future__ import annotations

from typing import TypedDict

from fared.management.documents.schema.common import BytesPerSecond, Seconds


class LoadSamples(TypedDict):
    """The load of an interface: ``ages`` in seconds before now, oldest first, and ``loads``."""

    interface: str
    bandwidth: BytesPerSecond
    ages: list[Seconds]
    loads: list[BytesPerSecond]


class Load(TypedDict):
    """``show load``: outbound loads of the last minutes; ``period`` is that of measuring."""

    format: str
    router_id: str
    period: Seconds
    interfaces: list[LoadSamples]
