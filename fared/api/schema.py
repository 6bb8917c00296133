"""The JSON documents that scripts may rely on, one TypedDict each.

The control socket, ``/api/v1/...`` and ``fared-cli --json`` give the very same documents. Every
document names its format and version (``"format": "fared-routes/1"``). Within a version keys are
only ever added; what is removed or changes its meaning makes a new version.

Conventions, in all documents:

- router ids, areas, addresses, prefixes are text (``10.255.0.1``, ``0.0.0.0``, ``10.0.2.0/24``);
- bandwidths and capacities are bytes/s (``BytesPerSecond``), None where unknown;
- durations and ages are seconds, as numbers; ``*_at`` and ``time`` are Unix time in seconds;
- ``hostname`` is the dynamic hostname of a router (RFC 5642), None where it announces none;
- shares are ratios 0..1;
- lists are in a stable order: by id, prefix or interface index, logs oldest first.

A transit network appears among nodes as ``net:ADDRESS`` (the DR's address).
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

BytesPerSecond = float | None
Seconds = float
UnixTime = float

SHOW_DOCUMENTS = {
    "status": "fared-status/1",
    "interfaces": "fared-interfaces/1",
    "neighbors": "fared-neighbors/1",
    "database": "fared-database/1",
    "lsdb": "fared-lsdb/1",
    "topology": "fared-topology/1",
    "spf": "fared-spf/1",
    "routes": "fared-routes/1",
    "weights": "fared-weights/1",
    "fib": "fared-fib/1",
    "convergence": "fared-convergence/1",
    "timers": "fared-timers/1",
    "counters": "fared-counters/1",
    "log": "fared-log/1",
    "config": "fared-config/1",
}
"""What ``show`` can be asked for, and the format of the answer."""

COMMAND_DOCUMENTS = {
    "explain": "fared-explain/1",
    "path": "fared-path/1",
    "validate": "fared-validate/1",
    "config-diff": "fared-config-diff/1",
    "reload": "fared-reload/1",
    "drain": "fared-drain/1",
    "undrain": "fared-drain/1",
}
"""The other commands. Arguments are listed at each document."""


class Document(TypedDict):
    """What all have in common."""

    format: str


# -- status ----------------------------------------------------------------------------------


class StageReached(TypedDict):
    """A start-up stage and when it was reached, in seconds since start."""

    stage: str
    seconds: Seconds


class AreaStatus(TypedDict):
    """One OSPF area in short. ``checksum``: sum of the LS checksums (RFC 4750), 0x and 8 digits."""

    area: str
    type: str
    interfaces: int
    neighbors: int
    full: int
    lsas: int
    checksum: str


class OspfStatus(TypedDict):
    """OSPF in short."""

    stub_router: bool
    areas: list[AreaStatus]


class SpfStatus(TypedDict):
    """``backoff`` is quiet, short-wait or long-wait (RFC 8405); durations are of the last run."""

    runs: int
    backoff: str
    last_at: UnixTime | None
    last_duration: Seconds | None


class RouteCounts(TypedDict):
    """``redistributed``: local ones that OSPF announces as external.

    ``weighted``: routes whose next hops have different weights.
    """

    total: int
    connected: int
    redistributed: int
    weighted: int


class FibCounts(TypedDict):
    """What is in the kernel of ours. ``drift``: repairs of foreign changes since start."""

    routes: int
    groups: int
    nexthops: int
    drift: int
    resyncs: int


class ConfigStatus(TypedDict):
    """``last_reload_ok`` and ``last_reload_error`` are None before the first reload."""

    file: str
    loaded_at: UnixTime
    last_reload_ok: bool | None
    last_reload_error: str | None


class Status(Document):
    """``show status``. ``stage`` is the label of the start-up stage (``ready`` at last)."""

    version: str
    router_id: str
    hostname: str
    pid: int
    started_at: UnixTime
    uptime: Seconds
    ready: bool
    stage: str
    stages: list[StageReached]
    drained: bool
    weights: str
    """none, capacity or available."""
    config: ConfigStatus
    ospf: OspfStatus | None
    spf: SpfStatus
    routes: RouteCounts
    fib: FibCounts
    sysctls: list[dict[str, Any]]
    """Kernel settings that weights depend on: ``name, wanted, found, action, ok, why``."""
    event_loop_lag: Seconds


# -- interfaces and neighbors ----------------------------------------------------------------


class Authentication(TypedDict):
    """Which key signs what an interface sends, and which key ids it accepts; never the key.

    ``algorithm`` None: the first key has not begun yet, nothing is sent. ``extended``: sequence
    numbers of RFC 7474. ``expired``: it is the last key, past its end, and used all the same.
    """

    algorithm: str | None
    key_id: int | None
    extended: bool
    expired: bool
    accepted_key_ids: list[int]


class Interface(TypedDict):
    """One interface that a protocol runs on.

    ``state`` is the RFC's word (Down, Loopback, Point-to-point, Waiting, DR Other, Backup, DR);
    the designated routers are interface addresses, None where there are none; ``bandwidth`` what the link can
    carry and ``bandwidth_source`` where that comes from: config, shaper, speed, or None.
    ``utilized`` and ``available`` are measured outbound load and what is left, ``dampened``
    whether coming up is being delayed.
    """

    interface: str
    ifindex: int
    up: bool
    proto: str
    area: str
    network_type: str
    state: str
    passive: bool
    priority: int
    designated_router: str | None
    backup_designated_router: str | None
    cost: int
    mtu: int
    addresses: list[str]
    """With prefix length: ``10.128.0.1/31``."""
    unnumbered: bool
    bandwidth: BytesPerSecond
    bandwidth_source: str | None
    utilized: BytesPerSecond
    available: BytesPerSecond
    hello_interval: Seconds
    dead_interval: Seconds
    neighbors: int
    full: int
    flaps: int
    dampened: bool
    authentication: Authentication | None


class Interfaces(Document):
    """``show interfaces``."""

    router_id: str
    interfaces: list[Interface]


class Neighbor(TypedDict):
    """One neighbor. ``state`` is the RFC's word (``Full``); ``uptime`` seconds in that state.

    ``dead_in``: seconds until it is declared down; the lists are lengths (RFC 2328 §10).
    """

    proto: str
    router_id: str
    hostname: str | None
    area: str
    interface: str
    address: str
    state: str
    uptime: Seconds
    dead_in: Seconds | None
    priority: int
    flaps: int
    last_reason: str | None
    retransmission_list: int
    request_list: int
    summary_list: int


class Neighbors(Document):
    """``show neighbors``."""

    router_id: str
    neighbors: list[Neighbor]


# -- the database ----------------------------------------------------------------------------


class DatabaseLsa(TypedDict):
    """One LSA, with the field names of ``fared-decode/1``.

    ``type`` is the word of the decoder (``router``, ``te-link``...), ``hostname`` that of the
    advertising router; ``body`` only where one LSA was asked for by ``id``.
    """

    type: str
    id: str
    adv_router: str
    hostname: str | None
    seq: int
    age: int
    checksum: int
    length: int
    self_originated: bool
    body: NotRequired[dict[str, Any]]


class DatabaseArea(TypedDict):
    """The LSAs of one area; ``checksum`` as in ``AreaStatus``."""

    area: str
    type: str
    checksum: str
    lsas: list[DatabaseLsa]


class Database(Document):
    """``show database``; arguments ``type`` (a word or the beginning of one) and ``id``, optional.

    ``as_scope``: LSAs that belong to no area (AS-external, AS-scoped opaque).
    """

    router_id: str
    areas: list[DatabaseArea]
    as_scope: list[DatabaseLsa]


class LsdbNeighbor(TypedDict):
    """A full neighbor: enough to name the next hop."""

    router_id: str
    address: str


class LsdbInterface(TypedDict):
    """An interface as the offline SPF needs it."""

    name: str
    area: str
    type: str
    ifindex: int
    addresses: list[str]
    unnumbered: bool
    cost: int
    bandwidth: BytesPerSecond
    neighbors: list[LsdbNeighbor]


class LsdbLsa(TypedDict):
    """A whole LSA as on the wire, with its age when the document was made."""

    hex: str
    age: int


class LsdbArea(TypedDict):
    """The LSAs of one area."""

    area: str
    stub: bool
    lsas: list[LsdbLsa]


Lsdb = TypedDict(
    "Lsdb",
    {
        "format": str,
        "proto": str,
        "router_id": str,
        "interfaces": list[LsdbInterface],
        "areas": list[LsdbArea],
        "as": list[LsdbLsa],
    },
)
"""``show lsdb``: exactly the file that ``fared-cli spf --lsdb`` reads."""


# -- topology and SPF ------------------------------------------------------------------------


class TopologyNode(TypedDict):
    """``transit`` False: paths may end here but not pass (stub router)."""

    id: str
    hostname: str | None
    network: bool
    transit: bool
    prefixes: int


TopologyLink = TypedDict(
    "TopologyLink",
    {
        "from": str,
        "to": str,
        "metric": int,
        "capacity": BytesPerSecond,
        "available": BytesPerSecond,
        "two_way": bool,
    },
)
"""One direction of one link. ``two_way`` False: the other end does not confirm it."""


class TopologyArea(TypedDict):
    """The graph of one area."""

    area: str
    nodes: list[TopologyNode]
    links: list[TopologyLink]


class Topology(Document):
    """``show topology``: the traffic engineering database."""

    router_id: str
    areas: list[TopologyArea]


class SpfNode(TypedDict):
    """A vertex of the shortest-path DAG; ``first_hops`` are ids of neighbors."""

    id: str
    hostname: str | None
    area: str
    metric: int
    first_hops: list[str]


class SpfRun(TypedDict):
    """One computation. ``spf_ran`` False: only capacities were propagated again."""

    at: UnixTime
    causes: list[str]
    spf_ran: bool
    nodes: int
    edges: int
    routes: int
    """How many routes changed."""
    duration: Seconds
    backoff: str


class Spf(Document):
    """``show spf`` (``nodes``) and ``show spf log`` (argument ``log`` true: ``log`` instead)."""

    root: str
    backoff: str
    nodes: NotRequired[list[SpfNode]]
    log: NotRequired[list[SpfRun]]


# -- routes and weights ----------------------------------------------------------------------


class RouteNextHop(TypedDict):
    """``bandwidth`` of the local link, ``capacity`` of the whole path; ``weight`` as in the kernel."""

    interface: str
    address: str | None
    """None where the next hop needs no gateway address."""
    neighbor: str
    hostname: str | None
    bandwidth: BytesPerSecond
    capacity: BytesPerSecond
    weight: int
    share: float


class Route(TypedDict):
    """``type`` is intra-area, inter-area, external-1, external-2, level-1 or level-2."""

    prefix: str
    metric: int
    type: str
    area: str | None
    connected: bool
    nexthops: list[RouteNextHop]


class Routes(Document):
    """``show routes``; argument ``prefix`` optional: only that one, or for an address the best."""

    root: str
    af: str
    routes: list[Route]


class WeightMember(TypedDict):
    """``wanted_share`` follows the capacities exactly, ``share`` the integer weights.

    ``error`` = share / wanted_share - 1 (0 where nothing was wanted).
    """

    interface: str
    address: str | None
    neighbor: str
    hostname: str | None
    bandwidth: BytesPerSecond
    capacity: BytesPerSecond
    weight: int
    wanted_share: float
    share: float
    ecmp_share: float
    error: float


class WeightVector(TypedDict):
    """One distinct set of weighted next hops and the routes that share it.

    ``prefixes`` counts them, ``examples`` are the first three; ``quantization_error`` is the
    throughput lost to integer weights, as a ratio.
    """

    prefixes: int
    examples: list[str]
    destinations: list[str]
    quantization_error: float
    members: list[WeightMember]


class Weights(Document):
    """``show weights``; argument ``prefix`` optional: the vector of that route only."""

    root: str
    metric: str
    """none, capacity or available."""
    vectors: list[WeightVector]


LimitingLink = TypedDict(
    "LimitingLink",
    {
        "from": str,
        "from_hostname": str | None,
        "to": str,
        "to_hostname": str | None,
        "capacity": BytesPerSecond,
    },
)
"""The link that bounds a path capacity: where a repair would help."""


class ExplainNextHop(TypedDict):
    """One next hop and why it has its weight, in numbers and as a sentence (``reason``)."""

    interface: str
    address: str | None
    neighbor: str
    hostname: str | None
    bandwidth: BytesPerSecond
    capacity: BytesPerSecond
    limiting_link: LimitingLink | None
    """None where the capacity is unknown, or is bounded by several links together."""
    weight: int
    share: float
    ecmp_share: float
    reason: str


class Explain(Document):
    """``explain PREFIX`` (argument ``prefix``, or an address): why the route is as it is."""

    root: str
    prefix: str
    metric: int
    type: str
    area: str | None
    connected: bool
    destinations: list[dict[str, str | None]]
    """The routers that announce the prefix and were chosen: ``{"id", "hostname"}``."""
    nexthops: list[ExplainNextHop]
    weights: str
    """none, capacity or available: what the weights follow."""
    summary: str
    """The whole in one or two sentences."""
    last_change: dict[str, Any] | None
    """``{"at": UnixTime, "causes": [text]}`` of the last change to this route."""


PathEdge = TypedDict(
    "PathEdge",
    {
        "from": str,
        "from_hostname": str | None,
        "to": str,
        "to_hostname": str | None,
        "metric": int,
        "capacity": BytesPerSecond,
        "available": BytesPerSecond,
        "share": float,
    },
)
"""One link on a shortest path; ``share`` is the part of the source's traffic over it."""


class PathDocument(Document):
    """``path SRC DST``: all shortest paths, as every node on them splits.

    Arguments ``source`` and ``destination`` are router ids or hostnames; the destination may
    also be a prefix or an address. ``capacity``: what the paths carry together; edges are in order of distance from the source.
    """

    source: str
    source_hostname: str | None
    destination: str
    destination_hostname: str | None
    metric: int
    capacity: BytesPerSecond
    edges: list[PathEdge]


# -- the kernel ------------------------------------------------------------------------------


class FibNextHop(TypedDict):
    """A next-hop object."""

    id: int
    interface: str
    address: str | None
    onlink: bool


class FibMember(TypedDict):
    """A member of a group."""

    nexthop_id: int
    interface: str
    address: str | None
    weight: int


class FibGroup(TypedDict):
    """A next-hop group and how many routes use it."""

    id: int
    type: str
    routes: int
    members: list[FibMember]


class FibRoute(TypedDict):
    """A route and the object (next hop or group) it points at."""

    prefix: str
    nexthop_id: int


class FibDifference(TypedDict):
    """``object`` is route, group or nexthop; ``wanted`` and ``found`` None where it is absent."""

    object: str
    key: str
    wanted: str | None
    found: str | None


class Fib(Document):
    """``show fib``: what the daemon has put into the kernel.

    Argument ``diff`` true: compared with a fresh dump of the kernel, ``diff`` instead of lists.
    """

    table: int
    protocol: int
    metric: int
    nexthops: NotRequired[list[FibNextHop]]
    groups: NotRequired[list[FibGroup]]
    routes: NotRequired[list[FibRoute]]
    diff: NotRequired[list[FibDifference]]


# -- time, counts, logs ----------------------------------------------------------------------


class ConvergenceChange(TypedDict):
    """One change from its first sign to the kernel.

    ``waited`` was added by the SPF back-off, ``computed`` by SPF, weights and RIB, ``planned``
    by the FIB plan, ``programmed`` by the kernel; ``total`` is from first sign to done.
    """

    at: UnixTime
    causes: list[str]
    spf_ran: bool
    routes: int
    operations: int
    waited: Seconds
    computed: Seconds
    planned: Seconds
    programmed: Seconds
    total: Seconds


class Convergence(Document):
    """``show convergence``: start-up, then the last changes."""

    stages: list[StageReached]
    changes: list[ConvergenceChange]


class Timer(TypedDict):
    """A pending timer. ``subject`` is what it is about (interface, neighbor, LSA)."""

    timer: str
    subject: str
    due_in: Seconds


class Timers(Document):
    """``show timers``, the next one first."""

    timers: list[Timer]


class Counter(TypedDict):
    """``group`` says what is counted (packets, errors, lsas, spf, fib...)."""

    group: str
    name: str
    value: int


class Counters(Document):
    """``show counters``, since start."""

    counters: list[Counter]


class LogLine(TypedDict):
    """One log record."""

    time: UnixTime
    level: str
    event: str
    fields: dict[str, Any]


class Log(Document):
    """``show log``: the last records; argument ``lines`` (a number) limits them."""

    lines: list[LogLine]


# -- configuration and operation -------------------------------------------------------------


class ConfigDocument(Document):
    """``show config``: the running configuration with all defaults, in the form of the file."""

    file: str
    loaded_at: UnixTime
    config: dict[str, Any]


class ConfigChange(TypedDict):
    """``action`` is update-in-place, bounce-adjacency or restart-required."""

    path: str
    old: Any
    new: Any
    action: str


class ConfigDiff(Document):
    """``config diff FILE`` (arguments ``text``, ``file``): the file against what is running."""

    changes: list[ConfigChange]


class Reload(Document):
    """``config reload``. ``errors`` are lines for people; with any, nothing was applied.

    ``changes`` lists all differences; those marked restart-required were not applied.
    """

    applied: bool
    changes: list[ConfigChange]
    errors: list[str]


class Check(TypedDict):
    """One self-check: what was compared (``name``), and what was found (``detail``)."""

    name: str
    ok: bool
    detail: str


class Validate(Document):
    """``validate``: database, graph, routes and kernel agree."""

    ok: bool
    checks: list[Check]


class Drain(Document):
    """``drain`` and ``undrain``: the state now."""

    drained: bool


# -- offline ---------------------------------------------------------------------------------


class OfflineHop(TypedDict):
    """A next hop as in ``RouteNextHop``.

    ``interface`` is None where the root is not the router whose interfaces the file has;
    ``address`` is then what the far end floods, None where that is unknown.
    """

    interface: str | None
    address: str | None
    neighbor: str
    hostname: str | None
    bandwidth: BytesPerSecond
    capacity: BytesPerSecond
    weight: int
    share: float


class OfflineRoute(TypedDict):
    """As ``Route``."""

    prefix: str
    metric: int
    type: str
    area: str | None
    connected: bool
    nexthops: list[OfflineHop]


class Ignored(TypedDict):
    """What did not count.

    ``reason`` is maxage, checksum, malformed or unsupported (``key``: an LSA by type, link
    state id and advertising router, or by its place in the file), one-way (``A -> B``, the
    link that B does not confirm), overload or unreachable (a router).
    """

    key: str
    reason: str


class OfflineRoutes(Document):
    """``fared-cli spf``: ``fared-routes/1`` with the SPF result and what was left out."""

    root: str
    af: str
    routes: list[OfflineRoute]
    nodes: list[SpfNode]
    ignored: list[Ignored]


class RouteFacts(TypedDict):
    """What a difference compares of a route beside its next hops."""

    metric: int
    type: str
    area: str | None
    connected: bool


class HopFacts(TypedDict):
    """What a difference compares of a next hop."""

    weight: int
    share: float
    capacity: BytesPerSecond


class HopDifference(TypedDict):
    """A next hop of either side; ``before`` None: added, ``after`` None: removed."""

    interface: str | None
    address: str | None
    neighbor: str
    hostname: str | None
    before: HopFacts | None
    after: HopFacts | None


class RouteDifference(TypedDict):
    """A route that changes; ``before`` None: new, ``after`` None: lost."""

    prefix: str
    before: RouteFacts | None
    after: RouteFacts | None
    nexthops: list[HopDifference]


class RoutesDiff(Document):
    """``fared-cli spf --diff`` (``fared-routes-diff/1``): routes whose forwarding changes.

    ``changes`` are the options that made the difference (``fail-link S1,L2``), ``unchanged``
    counts the other routes (their capacities may differ), ``nodes`` and ``ignored`` are those
    after the change.
    """

    root: str
    af: str
    changes: list[str]
    routes: list[RouteDifference]
    unchanged: int
    nodes: list[SpfNode]
    ignored: list[Ignored]


class RoutesAll(Document):
    """``fared-cli spf --all`` (``fared-routes-all/1``): one document for each router as root."""

    roots: list[OfflineRoutes] | list[RoutesDiff]


# -- the control socket ----------------------------------------------------------------------

ERROR_CODES = {
    "bad-request": "not a JSON object with a command, or too large",
    "unknown-command": "the daemon does not know the command or what to show",
    "bad-argument": "an argument is missing or cannot be read",
    "not-found": "no such prefix, node or LSA",
    "unsupported": "known, but not in this daemon or configuration",
    "internal": "the daemon failed to answer; its log says why",
}
"""``{"ok": false, "error": {"code", "message"}}`` on the control socket."""
