"""``fared-ina``: the process that sums packets, apart from the daemon: no sum delays hellos.

``main`` is the command, ``process`` its loop, on the sockets of ``listening``: UDP for the slots of
all jobs, a unix socket for operators and ``fared-jobs``, and TCP for workers that join. ``jobs``
holds the jobs within the limits of memory, ``guests`` the workers that joined, ``results`` the ways
of sums to them.
"""

from fared.runtime.startup import relax_collector, without

relax_collector()
with without("typing_extensions"):
    import msgspec  # noqa: F401
