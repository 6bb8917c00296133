"""Documents about the configuration, its changes, and drained links."""

from tests.api.documents.common import NOW, Json

CONFIG: Json = {
    "format": "fared-config/1",
    "saved": False,
    "file": "/etc/fared/fared.yaml",
    "loaded_at": NOW - 600,
    "config": {
        "router-id": "10.255.0.5",
        "ospf": {"areas": {"0.0.0.0": {"type": "normal"}}, "max-paths": 64},
        "fib": {"table": "main"},
    },
}

CONFIG_DIFF: Json = {
    "format": "fared-config-diff/1",
    "changes": [
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
    ],
}  # fmt: skip

RELOAD: Json = {
    "format": "fared-reload/1",
    "applied": True,
    "changes": CONFIG_DIFF["changes"][:1],
    "errors": [],
    "warnings": [],
}

CONFIG_CHANGE: Json = {
    "format": "fared-config-change/1",
    "applied": True,
    "confirmed": False,
    "confirm_within": 300.0,
    "changes": CONFIG_DIFF["changes"][:1],
    "errors": [],
    "warnings": [],
}

CONFIRMED = CONFIG_CHANGE | {"confirmed": True, "confirm_within": None, "changes": []}

CONFIG_HISTORY: Json = {
    "format": "fared-config-history/1",
    "unconfirmed_until": NOW + 272,
    "entries": [
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
}

DRAIN: Json = {
    "format": "fared-drain/1",
    "drained": True,
    "interface": None,
    "share": None,
    "reason": "",
    "not_kept": None,
}

DRAIN_LINK = DRAIN | {"interface": "swp49", "share": 0.25, "reason": "optics"}
