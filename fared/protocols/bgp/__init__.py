"""BGP-4 (RFC 4271) with path bandwidth (RFC 10005), without I/O.

``packet`` are the codecs, ``session`` is the session with one neighbor, ``rib`` are the tables,
``settings`` what the daemon passes on. The engine follows, with policy and redistribution. Until
then nothing else in fared imports this package, but for ``settings``.
"""
