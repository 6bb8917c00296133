"""The JSON documents that scripts may rely on, one TypedDict each: one module a view.

The control socket, ``/api/v1/...`` and ``fared-cli --json`` give the very same documents. Every
document names its format and version (``"format": "fared-routes/1"``). Within a version keys are
only ever added; what is removed or changes its meaning makes a new version.

Conventions, in all documents:

- router ids, system ids, areas, addresses, prefixes are text (``10.255.0.1``, ``0102.5500.0001``,
  ``0.0.0.0``, ``10.0.2.0/24``); levels of IS-IS are the areas ``level-1`` and ``level-2``;
- bandwidths and capacities are bytes/s (``BytesPerSecond``), None where unknown;
- durations and ages are seconds, as numbers; ``*_at`` and ``time`` are Unix time in seconds;
- ``hostname`` is the dynamic hostname of a router (RFC 5642, RFC 5301), None where it announces
  none;
- shares are ratios 0..1;
- lists are in a stable order: by id, prefix or interface index, logs oldest first.

A transit network appears among nodes as ``net:ADDRESS`` (the DR's address), a pseudonode as
``0102.5500.0001.02``.

``proto`` is ``ospf`` or ``isis``. As an argument it narrows a document to one protocol;
``show isis neighbors`` and ``/api/v1/isis/neighbors`` are other ways to say it.
"""

from __future__ import annotations

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

PROTOCOLS = ("ospf", "isis")

NARROWED_DOCUMENTS = (
    "interfaces",
    "neighbors",
    "database",
    "lsdb",
    "topology",
    "spf",
    "routes",
    "weights",
    "timers",
    "counters",
)
"""What ``show`` can be asked for of one protocol."""

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

ERROR_CODES = {
    "bad-request": "not a JSON object with a command, or too large",
    "unknown-command": "the daemon does not know the command or what to show",
    "bad-argument": "an argument is missing or cannot be read",
    "not-found": "no such prefix, node or LSA",
    "unsupported": "known, but not in this daemon or configuration",
    "internal": "the daemon failed to answer; its log says why",
}
"""``{"ok": false, "error": {"code", "message"}}`` on the control socket."""
