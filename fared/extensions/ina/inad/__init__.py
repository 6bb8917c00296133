"""``fared-ina``: the process that sums packets, apart from the daemon: no sum delays hellos.

``process`` is its loop: one UDP socket for the slots of all jobs, a unix socket for operators and
``fared-jobs``, and TCP for workers that join. ``jobs`` holds the jobs within the limits of memory.
"""

from fared.runtime.startup import relax_collector, without

relax_collector()
with without("typing_extensions"):
    import msgspec  # noqa: F401
