"""Documents about the router itself: status, log, timers, counters, memory, load."""

from typing import Any

from fared.management.documents import counters, log, memory, protocol_status, status
from tests.api.documents.common import NOW, Json
from tests.api.documents.links import MISSING
from tests.api.sample import sample

STATUS = sample(
    status.Status,
    version="0.2.0",
    router_id="10.255.0.5",
    links={"total": 8, "missing": MISSING},
    hostname="leaf1",
    pid=4242,
    started_at=NOW - 93_784,
    uptime=93_784.2,
    ready=True,
    stage="ready",
    stages=[
        {"stage": "links-known", "seconds": 0.012},
        {"stage": "adjacencies-up", "seconds": 1.04},
        {"stage": "ready", "seconds": 1.21},
    ],
    weights="capacity",
    config=sample(
        status.ConfigStatus,
        file="/etc/fared/fared.yaml",
        loaded_at=NOW - 600,
        last_reload_ok=False,
        last_reload_error="/etc/fared/fared.yaml:3:1: unknown key",
    ),
    ospf=sample(
        status.OspfStatus,
        unauthenticated=4,
        flooding={"reduction": "none", "delay": 0.2, "topologies": []},
        areas=[
            sample(
                protocol_status.AreaStatus,
                area="0.0.0.0",
                type="normal",
                interfaces=5,
                neighbors=4,
                full=4,
                lsas=76,
                checksum="0x0012a4f3",
            )
        ],
    ),
    spf={"runs": 41, "backoff": "quiet", "last_at": NOW - 133, "last_duration": 0.00042},
    routes=sample(
        status.RouteCounts,
        total=12,
        connected=5,
        weighted=1,
        protocols={"ospf": 12},
        families={"ipv4": 12},
    ),
    fib=sample(
        status.FibCounts,
        routes=7,
        groups=2,
        nexthops=4,
        resyncs=1,
        foreign=[{"prefix": "10.0.2.0/24", "protocol": 3}],
        foreign_total=1,
    ),
    spraying=sample(
        status.SprayStatus,
        granularity="packet",
        groups=3,
        prefixes=12,
        problem="nft is missing: install nftables",
        nexthops=[
            {"interface": "swp1", "address": "10.1.1.0", "packets": 1000, "bytes": 1500000},
            {"interface": "swp2", "address": None, "packets": 1, "bytes": 100},
        ],
    ),
    sysctls=[
        {
            "name": "net.ipv4.fib_multipath_hash_policy",
            "wanted": "1",
            "found": "0",
            "action": "left",
            "ok": False,
            "why": "ports must count",
            "error": None,
        }
    ],
    event_loop_lag=0.0004,
)

GRACEFUL_RESTART: Json = {
    "format": "fared-graceful-restart/1",
    "protocols": [
        {
            "proto": "ospf",
            "enabled": True,
            "restarting": {"planned": False, "since": 0.42, "remaining": 119.58},
            "restarted": {
                "planned": True,
                "duration": 0.713,
                "ended": 3600.0,
                "result": "completed",
            },
            "helper": True,
            "helping": [
                {
                    "interface": "swp1",
                    "router_id": "10.255.0.1",
                    "hostname": "spine1",
                    "reason": "software-restart",
                    "since": 2.31,
                    "remaining": 117.69,
                }
            ],
            "ended": [
                {
                    "interface": "swp2",
                    "router_id": "10.255.0.2",
                    "hostname": None,
                    "ended": 1200.0,
                    "result": "topology-change",
                },
                {
                    "interface": "swp1",
                    "router_id": "10.255.0.1",
                    "hostname": "spine1",
                    "ended": 61.0,
                    "result": "completed",
                },
            ],
        }
    ],
}

TIMERS: Json = {
    "format": "fared-timers/1",
    "timers": [
        {"timer": "hello", "proto": "ospf", "subject": "swp1", "due_in": 0.31},
        {"timer": "inactivity", "proto": "ospf", "subject": "spine1 on swp1", "due_in": 3.4},
        {"timer": "refresh", "proto": "ospf", "subject": "router 10.255.0.5", "due_in": 1402.0},
    ],
}

COUNTERS = sample(
    counters.Counters,
    counters=[
        {"proto": "ospf", "group": "packets", "name": "hello received", "value": 374_802},
        {"proto": "ospf", "group": "packets", "name": "ls-update sent", "value": 91},
        {"proto": "ospf", "group": "errors", "name": "checksum", "value": 0},
    ],
)

LOG = sample(
    log.LogDocument,
    lines=[
        {
            "time": NOW - 133,
            "level": "warning",
            "event": "neighbor-changed",
            "fields": {"interface": "swp1", "previous": "Full", "state": "Down"},
        },
        {"time": NOW - 12, "level": "info", "event": "reloaded", "fields": {"changes": 1}},
    ],
)


def _table(table: str, proto: str | None, area: str | None, entries: int, **more: Any) -> Json:
    return sample(memory.TableSize, table=table, proto=proto, area=area, entries=entries, **more)


LOAD: Json = {
    "format": "fared-load/1",
    "router_id": "10.255.0.1",
    "period": 1.0,
    "interfaces": [
        {
            "interface": name,
            "bandwidth": bandwidth,
            "ages": [float(age) for age in range(89, -1, -1)],
            "loads": [
                part * 12.5e6 * (at % period < period / 2) + 1e5 * (at % 7) for at in range(90)
            ],
        }
        for name, bandwidth, part, period in (
            ("S1", 12.5e6, 0.95, 30),
            ("S2", 12.5e6, 0.6, 24),
            ("S3", None, 0.2, 90),
        )
    ],
}

MEMORY = sample(
    memory.Memory,
    cpu=41.3,
    resident=98 << 20,
    peak_resident=121 << 20,
    descriptors=61,
    client_descriptors=49152,
    descriptor_limit=65536,
    event_loop_lag=0.0004,
    tables=[
        _table("lsdb", "ospf", "0.0.0.0", 76, limit=150_000, state="room"),
        _table(
            "lsdb", "ospf", "as", 10_000, limit=8_000, state="full", ignored=2_310, times_full=2
        ),
        _table("ted", "ospf", "0.0.0.0", 12),
        _table("prefixes", "ospf", None, 10_030, limit=600_000, state="room"),
        _table("rib", "ospf", None, 10_012),
        _table("routes", None, None, 10_007),
        _table("log", None, None, 1000),
    ],
)
