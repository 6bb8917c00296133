"""The BFR-ids of a job's workers, so that results go to them by BIER."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from fared.core.ids import ipv4_prefix
from fared.extensions.ina.by_bier import BierWay
from fared.extensions.ina.control.errors import ManagerError
from fared.extensions.ina.plan.dissemination import AS_ASKED
from fared.paths.bier.bit_string import bit_strings

if TYPE_CHECKING:
    from fared.router.bier import BierRouting

_HOST = 32


def results_way(
    routing: BierRouting | None, workers: Sequence[str], *, wish: bool | None
) -> BierWay | str:
    """Return how results can go: the BFR-ids of workers, or why by unicast.

    ``wish``: by BIER (True) or unicast; None: by BIER if possible. Raises ManagerError if BIER is
    wished, and a worker has no BFR-id.
    """
    if wish is False:
        return AS_ASKED
    try:
        return way_by_bier(routing, workers)
    except ManagerError as error:
        if wish:
            raise
        return str(error)


def way_by_bier(routing: BierRouting | None, workers: Sequence[str]) -> BierWay:
    """Return the BFR-id of each worker, in order of rank. Raises ManagerError."""
    if routing is None:
        raise ManagerError("BIER does not run here (bier)")
    known = {entry.prefix: entry for entries in routing.birt.values() for entry in entries}
    ids: dict[int, int] = {}
    for number, address in enumerate(workers, 1):
        entry = known.get(ipv4_prefix(int(_checked(address)), _HOST))
        if entry is None:
            where = "bier: hosts, at its leaf; not behind a summary"
            raise ManagerError(f"{address} has no BFR-id here ({where})")
        if not entry.usable:
            raise ManagerError(f"{address} is not reached by BIER: {entry.problem}")
        ids[number] = entry.bfr_id
    settings = routing.settings
    if len(bit_strings(ids.values(), settings.length)) > 1:
        raise ManagerError(f"BFR-ids of workers are in several sets of {settings.length}")
    return BierWay(settings.sub_domain, settings.length, ids)


def _checked(text: str) -> IPv4Address:
    try:
        return IPv4Address(text)
    except ValueError as error:
        raise ManagerError(f"{text} is not an IPv4 address") from error
