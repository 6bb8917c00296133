"""BGP-4 (RFC 4271) with path bandwidth (RFC 10005), without I/O.

``packet`` are the codecs, ``session`` is the session with one neighbor, ``rib`` are the tables. The
parts of the engine share an ``instance``:

- ``peering`` finds the links to neighbors, and begins and ends sessions; ``neighbor`` is one of
  them, ``reach`` the link to it in the graph;
- ``exchange`` learns what neighbors tell, by ``policy``; ``keeping`` keeps routes of those that
  restart (RFC 4724), ``restarter`` restarts this router;
- ``networks`` originates prefixes, ``redistributed`` those of other protocols;
- ``announcing`` decides, and tells neighbors, bandwidths as ``pacing`` says.

``engine`` connects them, ``counted`` says what it counts. ``settings`` imports nothing of them.
"""
