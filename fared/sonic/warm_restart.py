"""SONiC's warm restart, and the routes that a former process has left in APPL_DB.

``fpmsyncd`` ends a warm restart three seconds after both families have told that their initial
information has ended (EOIU): rows that were not repeated until then are deleted. Without a warm
restart nobody deletes them, so whoever begins must know the rows of its predecessor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from fared.sonic.connection import RedisConnection
from fared.sonic.databases import SonicDatabase
from fared.sonic.facts import HashFields
from fared.sonic.values import Values

_FAMILIES = ("IPv4", "IPv6")
_TABLES = ("ROUTE_TABLE", "_ROUTE_TABLE")
"""The second has rows that orchagent has not taken yet."""


class WarmState(msgspec.Struct, frozen=True):
    """Whether warm restart is enabled for routing, and its state; empty: there was none."""

    enabled: bool = False
    state: str = ""

    @property
    def text(self) -> str:
        """One word for people: ``off``, or the state."""
        return self.state or "not-begun" if self.enabled else "off"


class WarmRestart:
    """Tells SONiC where the start of the router is. Methods raise FAILURES of ``connection``."""

    def __init__(self, connection: RedisConnection, databases: Mapping[str, SonicDatabase]) -> None:
        self._connection = connection
        self._state, self._appl = databases["STATE_DB"], databases["APPL_DB"]
        self._values = Values()

    async def begin(self) -> None:
        """Take back what the former process told: initial information has not ended."""
        await self._connection.delete("STATE_DB", *map(self._eoiu, _FAMILIES))

    async def reached(self) -> None:
        """Tell that all routes have been sent, of both families."""
        for family in _FAMILIES:
            await self._connection.set_fields("STATE_DB", self._eoiu(family), {"state": "reached"})

    async def state(self) -> WarmState:
        """Return whether warm restart is enabled, and how far it is."""
        enabled, state = await self._connection.rows(
            [
                HashFields(
                    "STATE_DB", self._state.key("WARM_RESTART_ENABLE_TABLE", "bgp"), ("enable",)
                ),
                HashFields("STATE_DB", self._state.key("WARM_RESTART_TABLE", "bgp"), ("state",)),
            ]
        )
        word = self._values.word
        return WarmState(enabled=word(enabled[0]) == "true", state=word(state[0]))

    async def routes_of(self, protocols: Collection[str]) -> set[str]:
        """Return the keys of rows with a protocol: what a former process has announced.

        ``protocols`` are the words for it, in small letters. A key is a prefix, or an address of
        full length; in a VRF the name of that comes first.
        """
        found: set[str] = set()
        for table in _TABLES:
            start = self._appl.key(table, "")
            async for some in self._connection.keys("APPL_DB", [f"{start}*"]):
                names = [name for raw in some if (name := self._values.name(raw))]
                wanted = [HashFields("APPL_DB", name, ("protocol",)) for name in names]
                rows = zip(names, await self._connection.rows(wanted), strict=True)
                found |= {
                    name.removeprefix(start)
                    for name, row in rows
                    if self._values.word(row[0]) in protocols
                }
        return found

    def _eoiu(self, family: str) -> str:
        return self._state.key("BGP_STATE_TABLE", family, "eoiu")
