"""Messages between the daemon and ``fared-jobs``, the process that leads its jobs.

The daemon passes on what is flooded and what it knows of the fabric; the process decodes, plans and
decides, so that nothing whose length a stranger decides runs in the loop that sends hellos.
"""

from __future__ import annotations

import msgspec

from fared.core.ids import NodeId
from fared.extensions.ina.by_bier import BierWay
from fared.extensions.ina.control.creation import WorkerPlace

NAME = "fared-jobs"
MAX_SIZE = 256 << 20
"""Bytes of a message: the fabric grows with the network, a document with its jobs."""

AddressAt = tuple[str, int, bool]
"""An address, and the router that is to have it behind it; True: in another area, perhaps."""


class GraphArrays(msgspec.Struct, frozen=True, array_like=True):
    """The graph of an area or level as bytes of arrays: see ``fared.paths.ted.graph.Graph``.

    ``backbone``: it is area 0, or level 2.
    """

    nodes: bytes
    indptr: bytes
    dst: bytes
    capacity: bytes
    area: int = 0
    backbone: bool = False


# -- from the daemon ---------------------------------------------------------------------------


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """The first message: our router, the most bytes of an advert, and the socket of fared-ina."""

    node: NodeId
    limit: int
    socket: str


class FabricNow(msgspec.Struct, frozen=True, tag="network"):
    """The fabric as it is now; ``bfrs`` are the routers that run BIER in our sub-domain."""

    graphs: list[GraphArrays]
    hostnames: dict[NodeId, str]
    bfrs: list[NodeId] = []


class Information(msgspec.Struct, frozen=True, tag="information"):
    """What a router floods in an area; None: it withdrew that."""

    node: NodeId
    key: int
    value: bytes | None
    area: int = 0


class CreateJob(msgspec.Struct, frozen=True, tag="create"):
    """Begin a job of workers at these places, for links of ``mtu`` bytes.

    ``results``: their BFR-ids, or why results go by unicast; ``forced``: by BIER or not at all.
    ``tree``: routers of a tree as an operator names them.
    """

    number: int
    name: str
    places: list[WorkerPlace]
    mtu: int
    results: BierWay | str
    forced: bool
    elastic: bool
    share: float
    tree: str | None = None


class DeleteJob(msgspec.Struct, frozen=True, tag="delete"):
    """End a job."""

    number: int
    name: str


class Show(msgspec.Struct, frozen=True, tag="show"):
    """Ask for the document of all jobs, or of one."""

    number: int
    name: str | None = None


class Checked(msgspec.Struct, frozen=True, tag="checked"):
    """Whether addresses are behind their routers."""

    found: list[tuple[AddressAt, bool]]


class HostsFound(msgspec.Struct, frozen=True, tag="hosts"):
    """The routers of hosts in our areas; None: nobody there has it."""

    hosts: dict[str, NodeId | None]


ToJobs = Begin | FabricNow | Information | CreateJob | DeleteJob | Show | Checked | HostsFound

# -- to the daemon -----------------------------------------------------------------------------


class Flood(msgspec.Struct, frozen=True, tag="flood"):
    """What this router is to flood from now on, in all areas, or in ``only`` one each."""

    items: dict[int, bytes]
    only: dict[int, dict[int, bytes]] = {}


class JobLog(msgspec.Struct, frozen=True, tag="log"):
    """A line for the daemon's log."""

    level: str
    event: str
    fields: dict[str, str | int | list[int]]


class JobsShown(msgspec.Struct, frozen=True, tag="shown"):
    """The answer to a request: the document without its jobs, and these, as JSON."""

    number: int
    document: bytes
    jobs: bytes


class RequestFailed(msgspec.Struct, frozen=True, tag="refused"):
    """A request that cannot be fulfilled."""

    number: int
    code: str
    text: str


class Brief(msgspec.Struct, frozen=True, tag="brief"):
    """The document for metrics and the page, of bounded size, as JSON."""

    document: bytes


class CheckAddresses(msgspec.Struct, frozen=True, tag="check"):
    """Ask whether addresses are behind their routers."""

    wanted: list[AddressAt]


class FindHosts(msgspec.Struct, frozen=True, tag="find"):
    """Ask for the routers of hosts in our areas."""

    addresses: list[str]


FromJobs = Flood | JobLog | JobsShown | RequestFailed | Brief | CheckAddresses | FindHosts
