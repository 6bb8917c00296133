"""Documents that all protocols share: interfaces, neighbors, the database, timers.

A document lists what each running protocol has, told apart by ``proto`` (``ospf``, ``isis``);
argument ``proto`` narrows it to one. What only one protocol knows is in ``schema.ospf`` and
``schema.isis``. ``area`` is an OSPF area, or the levels of IS-IS: ``level-1``, ``level-2``,
``level-1-2``.
"""

from __future__ import annotations

from typing import TypedDict

from fared.api.schema import isis, ospf
from fared.api.schema.common import Document, Seconds


class Interfaces(Document):
    """``show interfaces``."""

    router_id: str
    interfaces: list[ospf.Interface | isis.Interface]


class Neighbors(Document):
    """``show neighbors``."""

    router_id: str
    neighbors: list[ospf.Neighbor | isis.Neighbor]


class Database(Document):
    """``show database``; arguments ``type`` (a word or the beginning of one) and ``id``, optional.

    ``as_scope``: LSAs that belong to no area (AS-external, AS-scoped opaque). ``levels``: the
    LSPs of IS-IS; types are lsp, pseudonode, level-1 and level-2, an id is that of an LSP, or a
    system id or hostname for all LSPs of a router.
    """

    router_id: str
    areas: list[ospf.DatabaseArea]
    as_scope: list[ospf.DatabaseLsa]
    levels: list[isis.DatabaseLevel]


class Timer(TypedDict):
    """A pending timer. ``subject`` is what it is about (interface, neighbor, LSA).

    ``proto`` None: it serves all protocols.
    """

    timer: str
    proto: str | None
    subject: str
    due_in: Seconds


class Timers(Document):
    """``show timers``, the next one first."""

    timers: list[Timer]
