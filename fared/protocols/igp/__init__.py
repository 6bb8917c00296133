"""What both IGPs share.

``process`` has time, timers, outputs and ``counters`` of an engine (``counted``: of what),
``engine`` its turns, ``events`` its inputs and outputs. ``keys`` are those of authentication.
``refusals`` says why a router is no neighbor, ``bfd_sessions`` which sessions an engine wants,
``restart`` how a graceful restart ended.

- Flooding: ``throttle`` slows down originations, ``reduction`` and ``dynamic_flooding`` spare
  copies, the latter over the ``flooding_topology`` of each of ``flooding_scopes``;
  ``foreign_copies`` recognizes another router with our id.
- Limits: ``database_limit`` and ``prefix_limit``, with the ``limit_shares`` of neighbors.
- ``redistribution``: the routes of other sources.
"""
