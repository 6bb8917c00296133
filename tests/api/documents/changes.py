"""Documents about the configuration, its changes, and drained links."""

from fared.management.documents import config, config_changes, operation
from tests.api.documents.common import NOW, Json
from tests.api.sample import sample

CONFIG = sample(
    config.ConfigDocument,
    file="/etc/fared/fared.yaml",
    loaded_at=NOW - 600,
    config={
        "router-id": "10.255.0.5",
        "ospf": {"areas": {"0.0.0.0": {"type": "normal"}}, "max-paths": 64},
        "fib": {"table": "main"},
    },
)

CONFIG_DIFF = sample(
    config_changes.ConfigDiff,
    changes=[
        {
            "path": "ospf.areas[0.0.0.0].interfaces.swp1.cost",
            "old": 10,
            "new": 20,
            "action": "update-in-place",
        },
        {
            "path": "router-id",
            "old": "10.255.0.5",
            "new": "10.255.0.9",
            "action": "restart-required",
        },
        {
            "path": "bgp.neighbors.swp1.hold-time",
            "old": 9,
            "new": 12,
            "action": "bounce-adjacency",
        },
    ],
)

RELOAD = sample(config_changes.ReloadDocument, applied=True, changes=CONFIG_DIFF["changes"][:1])

CONFIG_CHANGE = sample(
    config_changes.ConfigChanged,
    applied=True,
    confirm_within=300.0,
    changes=CONFIG_DIFF["changes"][:1],
)

SAVED = CONFIG_CHANGE | {"confirm_within": None, "changes": CONFIG_DIFF["changes"][:2]}
"""Of two changes, one waits for a restart."""

CONFIRMED = CONFIG_CHANGE | {"confirmed": True, "confirm_within": None, "changes": []}

CONFIG_HISTORY = sample(
    config_changes.ConfigHistory,
    unconfirmed_until=NOW + 272,
    entries=[
        {
            "back": back,
            "at": NOW - 28 - 86_400 * back,
            "how": how,
            "user": user,
            "comment": comment,
            "changes": changes,
            "state": state,
        }
        for back, (how, user, comment, changes, state) in enumerate(
            [
                ("apply", "anna", "more weight for pod 2", 3, "unconfirmed"),
                ("reload", "SIGHUP", "", 1, "final"),
                ("start", "fared", "", 0, "final"),
            ]
        )
    ],
)

DRAIN = sample(operation.DrainDocument, drained=True)

DRAIN_LINK = DRAIN | {"interface": "swp49", "share": 0.25, "reason": "optics"}

CLEARED_NEIGHBORS: Json = sample(
    operation.ClearedNeighbors,
    neighbors=[
        sample(
            operation.ClearedNeighbor,
            proto="ospf",
            interface="swp1",
            router_id="10.255.0.1",
            hostname="spine1",
        )
    ],
)

LOG_LEVEL: Json = sample(operation.LogLevel, level="debug", configured="info")
