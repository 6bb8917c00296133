"""What SONiC knows of each link: which rows are read for it, and what follows from their values.

The speed of a port is that of STATE_DB, which is known after autonegotiation, else the configured
one. A LAG has the capacity of its enabled members; with fewer than ``min_links`` it is down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from fared.core.link_facts import PlatformLink
from fared.sonic.databases import SonicDatabase
from fared.sonic.inventory import Inventory
from fared.sonic.values import Raw, Values

_MOST_LINKS = 1024


class HashFields(NamedTuple):
    """Fields of a hash in a database."""

    database: str
    key: str
    fields: tuple[str, ...]


Row = Sequence[Raw]


def wanted_rows(inventory: Inventory, databases: Mapping[str, SonicDatabase]) -> list[HashFields]:
    """Return the rows that ``read_facts`` needs, in its order."""
    config, state, appl = (databases[n].key for n in ("CONFIG_DB", "STATE_DB", "APPL_DB"))
    rows: list[HashFields] = []
    for port in inventory.ports:
        rows.append(HashFields("CONFIG_DB", config("PORT", port), ("speed",)))
        rows.append(HashFields("STATE_DB", state("PORT_TABLE", port), ("speed",)))
        rows.append(HashFields("APPL_DB", appl("PORT_TABLE", port), ("oper_status",)))
    for lag, members in inventory.lags.items():
        rows.append(HashFields("CONFIG_DB", config("PORTCHANNEL", lag), ("min_links",)))
        rows.append(HashFields("APPL_DB", appl("LAG_TABLE", lag), ("oper_status",)))
        rows += [
            HashFields("APPL_DB", appl("LAG_MEMBER_TABLE", lag, member), ("status",))
            for member in members
        ]
    for name, table in inventory.interfaces:
        rows.append(HashFields("CONFIG_DB", config(table, name), ("vrf_name",)))
    return rows


def read_facts(
    inventory: Inventory, rows: Sequence[Row], values: Values, found: dict[str, PlatformLink]
) -> None:
    """Add the facts of each link to ``found``, from the values of ``wanted_rows``.

    The members of a LAG, and whatever has a VRF, are of this portion or found already.
    """
    each = iter(rows)

    def one() -> Raw:
        return next(each, (None,))[0]

    for port in inventory.ports:
        configured, negotiated, oper = one(), one(), one()
        speed = values.speed(negotiated, configured)
        found[port] = PlatformLink(speed=speed, down=values.word(oper) == "down")
    for lag, members in inventory.lags.items():
        least, oper = one(), one()
        status = {member: values.word(one()) for member in members}
        min_links = values.number(least, _MOST_LINKS) or 0
        found[lag] = _lag(found, status, min_links, down=values.word(oper) == "down")
    for name, _ in inventory.interfaces:
        vrf = values.name(one())
        if vrf:
            found[name] = replace(found.get(name, PlatformLink()), vrf=vrf)


def _lag(
    ports: Mapping[str, PlatformLink], status: Mapping[str, str], min_links: int, *, down: bool
) -> PlatformLink:
    if not any(status.values()):  # nobody has told of a member yet: the kernel knows better
        return PlatformLink(down=down, min_links=min_links)
    enabled = [member for member, word in status.items() if word == "enabled"]
    speeds = [ports[m].speed if m in ports else None for m in enabled]
    known = [speed for speed in speeds if speed is not None]
    return PlatformLink(
        speed=sum(known) if known and len(known) == len(speeds) else None,
        down=down or len(enabled) < max(1, min_links),
        members=(len(enabled), len(status)),
        min_links=min_links,
    )
