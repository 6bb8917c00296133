"""``fared-bfd``: the process that runs the BFD sessions, started and watched by the daemon.

It is apart from the daemon, so that no computation of routes, view or collection of garbage delays
its packets; it imports little, and no event loop. ``process`` is its loop, ``sockets`` are those of
BFD, ``link`` is the one to the daemon.
"""

from fared.runtime.startup import import_when_needed, relax_collector, without

relax_collector()
import_when_needed("hashlib", "hmac")
with without("typing_extensions"):
    import msgspec  # noqa: F401
