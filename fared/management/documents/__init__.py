"""The documents that a daemon answers with: one module each, which says all of it once.

A module has the parts of its document (``facts.Facts``: fields, types, units), the table that shows
it to people, the view that builds it from the running router, and its declaration (``DOCUMENT``:
arguments and help). JSON, the commands of the control socket, the paths of HTTP, ``fared-cli`` and
``tech-support`` follow from it. ``registry`` finds the modules by name.

- Documents: a module for each name in ``registry``; ``protocol_status`` is part of ``status``,
  ``link`` of ``interfaces``, ``missing`` (links without an adjacency) and ``lost`` (links that the
  fabric misses) of several, ``log_ring`` of ``log``. ``neighbor`` and ``interface`` have the rows
  of ``neighbors`` and ``interfaces``; ``neighbor_detail``, ``session_detail`` (of BGP) and
  ``interface_detail`` print one of them in full, with their ``packet_counts``. Answers
  of commands: ``operation``, ``config_changes``, ``recordings``.
- Their parts: ``facts`` and ``declare``, ``happened`` (what changed, in words), ``contents`` (of
  LSAs), ``rows`` and ``sliced`` for long lists; printed on ``paper`` by ``cells`` and ``human``.
- Views: ``dispatch`` calls them with a ``context``, ``each`` has those of a protocol, ``views``
  those that need more of the router; ``errors`` refuses. ``census`` counts for the metrics.

Within a version of a format (``fared-routes/1``) keys are only added; a removed key, or one with
another meaning, makes a new version. Conventions, in all documents:

- router ids, system ids, areas, addresses, prefixes are text (``10.255.0.1``, ``0102.5500.0001``,
  ``0.0.0.0``, ``10.0.2.0/24``); levels of IS-IS are the areas ``level-1`` and ``level-2``;
- bandwidths and capacities are bytes/s (``BytesPerSecond``), None where unknown;
- durations and ages are seconds, as numbers; ``"*_at"`` and ``"time"`` are Unix time in seconds;
- ``"hostname"`` is the dynamic hostname of a router (RFC 5642, RFC 5301), None where it advertises
  none;
- shares are ratios 0..1;
- lists are in a stable order: by id, prefix or interface index, logs oldest first.

A transit network appears among nodes as ``net:ADDRESS`` (the DR's address), a pseudonode as
``0102.5500.0001.02``.

``"proto"`` is ``"ospf"``, ``"isis"`` or ``"bgp"``. As an argument it narrows a document to one
protocol; ``show isis neighbors`` and ``/api/v1/isis/neighbors`` do the same.

Daemon and client both load a module, so it imports neither rich nor an engine; views that need
more of the router than its context are in ``views``.
"""
