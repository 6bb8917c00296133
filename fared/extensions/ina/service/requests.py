"""Requests about jobs of in-network aggregation."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from fared.extensions.ina.fields import NAME
from fared.management.api.requests import DaemonRequest, Value
from fared.management.documents.errors import CommandError

if TYPE_CHECKING:
    from fared.extensions.ina.document import InaJobs
    from fared.extensions.ina.service.jobs import InaService

_LEAST_MTU, _MOST_MTU = 576, 65535
_FLAG: Final = "true or false"
Name = Annotated[
    str,
    Value(
        "letters, digits, '-', '_', '.', at most 64",
        lambda name: NAME.fullmatch(name) is not None,
    ),
]


_WORKERS: Final = Value(
    "a list of addresses",
    metavar="ADDRESS,...",
    help="Hosts, in order of rank.",
    parse=lambda text: [word.strip() for word in text.split(",")],
)
_MTU: Final = Value(
    f"{_LEAST_MTU} to {_MOST_MTU}",
    lambda mtu: _LEAST_MTU <= mtu <= _MOST_MTU,
    "INTEGER",
    "Of the path (default: the least of this router's links).",
    int,
)
_SHARE: Final = Value(
    "a number", metavar="FLOAT", help="Part of links that several jobs use (1).", parse=float
)
_BIER: Final = Value(_FLAG, help="Results by BIER, or refuse the job (default: where possible).")
_UNICAST: Final = Value(_FLAG, help="Results by unicast, a copy for each worker.")
_TREE: Final = Value(
    "ROUTER[:NEXT],...,ROOT",
    metavar="ROUTER[:NEXT],...,ROOT",
    help="Sum at these routers, each at the first on its way, instead of planned trees.",
)
_ELASTIC: Final = Value(_FLAG, help="Go on without workers that are lost.")


class InaCreateRequest(DaemonRequest, frozen=True, kw_only=True):
    """Create a job, whose first worker is behind this router."""

    command: ClassVar[str] = "ina-create"
    name: Name
    workers: Annotated[list[str], _WORKERS]
    mtu: Annotated[int | None, _MTU] = None
    bier: Annotated[bool, _BIER] = False
    unicast: Annotated[bool, _UNICAST] = False
    elastic: Annotated[bool, _ELASTIC] = False
    share: Annotated[float, _SHARE] = 1.0
    tree: Annotated[str | None, _TREE] = None


class InaDeleteRequest(DaemonRequest, frozen=True, kw_only=True):
    """End a job."""

    command: ClassVar[str] = "ina-delete"
    name: Name


REQUESTS: Final[dict[str, type[DaemonRequest]]] = {
    cls.command: cls for cls in (InaCreateRequest, InaDeleteRequest)
}


def _wish(request: InaCreateRequest) -> bool | None:
    """Return whether results are to go by BIER; None: if possible. Raises CommandError."""
    if request.bier and request.unicast:
        raise CommandError("bad-argument", "bier and unicast are mutually exclusive")
    return True if request.bier else False if request.unicast else None


def perform(service: InaService, request: DaemonRequest) -> Awaitable[InaJobs]:
    """Answer a request. Raises CommandError."""
    match request:
        case InaCreateRequest():
            return service.create(
                request.name,
                request.workers,
                request.mtu,
                bier=_wish(request),
                elastic=request.elastic,
                share=request.share,
                tree=request.tree,
            )
        case InaDeleteRequest():
            return service.delete(request.name)
    raise CommandError("unknown-command", f"no such command: {request.command}")
