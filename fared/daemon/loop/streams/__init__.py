"""Streams: TCP connections of routing protocols, between sockets and the router.

The first output of an engine that concerns a stream loads this package: most routers have none.
``edge`` does what engines ask for (``core.streams``), ``stream`` is one connection, ``leaving``
has those that end, ``listening`` accepts those of neighbors, ``advertising`` has the router
advertisements of unnumbered links, ``pump`` waits for all their sockets.
"""
