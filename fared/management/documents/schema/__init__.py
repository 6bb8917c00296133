"""The JSON documents that scripts may rely on, a TypedDict for each; one module for each view.

The control socket, ``/api/v1/...`` and ``fared-cli --json`` return the same documents. Every
document names its format and version (``"format": "fared-routes/1"``). Within a version keys are
only added; a removed key, or one with another meaning, makes a new version.

Conventions, in all documents:

- router ids, system ids, areas, addresses, prefixes are text (``10.255.0.1``, ``0102.5500.0001``,
  ``0.0.0.0``, ``10.0.2.0/24``); levels of IS-IS are the areas ``level-1`` and ``level-2``;
- bandwidths and capacities are bytes/s (``BytesPerSecond``), None where unknown;
- durations and ages are seconds, as numbers; ``*_at`` and ``time`` are Unix time in seconds;
- ``hostname`` is the dynamic hostname of a router (RFC 5642, RFC 5301), None where it advertises
  none;
- shares are ratios 0..1;
- lists are in a stable order: by id, prefix or interface index, logs oldest first.

A transit network appears among nodes as ``net:ADDRESS`` (the DR's address), a pseudonode as
``0102.5500.0001.02``.

``proto`` is ``ospf`` or ``isis``. As an argument it narrows a document to one protocol;
``show isis neighbors`` and ``/api/v1/isis/neighbors`` do the same.
"""

from __future__ import annotations

ERROR_CODES = {
    "bad-request": "not a JSON object with a command, or too large",
    "unknown-command": "the daemon does not know the command or document",
    "bad-argument": "an argument is missing or cannot be read",
    "not-found": "no such prefix, node or LSA",
    "forbidden": "only members of api: change-group: may change the daemon",
    "unsupported": "known, but not in this daemon or configuration",
    "busy": "too many HTTP connections are being answered (only /metrics and health are then), or"
    " the kernel cannot be read now",
    "internal": "the daemon failed to answer; its log has the reason",
}
"""``{"ok": false, "error": {"code", "message"}}`` on the control socket."""
