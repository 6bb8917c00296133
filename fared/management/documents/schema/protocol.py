"""Documents that all protocols share: interfaces, neighbors, the database, timers.

A document lists the entries of each running protocol, distinguished by ``proto`` (``ospf``,
``isis``); argument ``proto`` narrows it to one. Fields of one protocol only are in ``schema.ospf``
and ``schema.isis``. ``area`` is an OSPF area, or the levels of IS-IS: ``level-1``, ``level-2``,
``level-1-2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from fared.management.documents.schema import isis, ospf
from fared.management.documents.schema.common import JsonDocument, Seconds
from fared.management.documents.schema.link import RefusedHelloEntry


class Interfaces(JsonDocument):
    """``show interfaces``."""

    router_id: str
    interfaces: list[ospf.InterfaceEntry | isis.InterfaceEntry]


class Neighbors(JsonDocument):
    """``show neighbors``; ``refused``: who is none, since its hellos are refused."""

    router_id: str
    neighbors: list[ospf.NeighborEntry | isis.NeighborEntry]
    refused: NotRequired[list[RefusedHelloEntry]]


class DatabaseDocument(JsonDocument):
    """``show database``; arguments ``type`` (a word or the beginning of one) and ``id``, optional.

    ``as_scope``: LSAs that belong to no area (AS-external, AS-scoped opaque). ``levels``: the
    LSPs of IS-IS; types are lsp, pseudonode, level-1 and level-2, an id is that of an LSP, or a
    system id or hostname for all LSPs of a router.
    """

    router_id: str
    areas: list[ospf.DatabaseArea]
    as_scope: Sequence[ospf.DatabaseLsa]
    levels: list[isis.DatabaseLevel]


class PendingTimer(TypedDict):
    """A pending timer. ``subject`` is its interface, neighbor or LSA.

    ``proto`` None: it serves all protocols.
    """

    timer: str
    proto: str | None
    subject: str
    due_in: Seconds


class Timers(JsonDocument):
    """``show timers``, the next one first."""

    timers: list[PendingTimer]
