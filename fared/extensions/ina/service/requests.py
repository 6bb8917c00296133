"""Requests of operators about jobs of in-network aggregation: their arguments are checked."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from fared.extensions.ina.fields import NAME
from fared.extensions.ina.service.jobs import InaService
from fared.management.api.errors import CommandError
from fared.management.api.respond import Json

if TYPE_CHECKING:
    from fared.management.api.schema.ina import InaJobs

_LEAST_MTU, _MOST_MTU = 576, 65535


def aggregation(service: InaService, command: str, args: Json) -> Awaitable[InaJobs]:
    """Answer ``ina-create`` or ``ina-delete``. Raises CommandError."""
    if command == "ina-create":
        return service.create(
            _name(args),
            _workers(args),
            _mtu(args),
            bier=args.get("bier") is True,
            elastic=args.get("elastic") is True,
            share=_share(args),
        )
    if command == "ina-delete":
        return service.delete(_name(args))
    raise CommandError("unknown-command", f"no such command: {command}")


def _share(args: Json) -> float:
    share = args.get("share", 1.0)
    if isinstance(share, bool) or not isinstance(share, int | float):
        raise CommandError("bad-argument", f"a share of {share!r}: a number")
    return float(share)


def _name(args: Json) -> str:
    name = args.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise CommandError("bad-argument", "name: letters, digits, '-', '_', '.', at most 64")
    return name


def _workers(args: Json) -> list[str]:
    workers: Any = args.get("workers")
    if not isinstance(workers, list) or not all(isinstance(one, str) for one in workers):
        raise CommandError("bad-argument", "workers must be a list of addresses")
    return workers


def _mtu(args: Json) -> int | None:
    mtu = args.get("mtu")
    if mtu is None:
        return None
    if not isinstance(mtu, int) or not _LEAST_MTU <= mtu <= _MOST_MTU:
        raise CommandError("bad-argument", f"mtu must be {_LEAST_MTU} to {_MOST_MTU}")
    return mtu
