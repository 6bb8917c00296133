"""Forwarding Plane Manager (FPM): routes to SONiC's fpmsyncd, as netlink messages over TCP.

Without I/O: ``frames`` packs messages into frames and reads them from a stream, ``encode`` packs
routes with their next hops inline, ``decode`` reads acknowledgements; ``session`` is the client's
state machine, with ``rows`` (what the switch has) and ``acks``. Layouts and numbers are
netlink's, from ``kernel.netlink`` and ``kernel.rtnetlink``.
"""
