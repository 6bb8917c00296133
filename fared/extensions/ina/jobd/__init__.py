"""``fared-jobs``: the process that leads and follows jobs of in-network aggregation.

The daemon starts it where ``ina`` is enabled. Anybody in the area can flood jobs without number,
and planning takes time in proportion to them: here it delays no hello. ``service`` connects
``JobManager`` to the daemon and to ``fared-ina``; ``asking`` has new jobs with workers in other
areas, and ``addresses`` those to which a job sends. ``report`` makes the document of ``show ina``,
with the ``rates`` of trees.
"""

from fared.runtime.startup import relax_collector, without

relax_collector()
with without("typing_extensions"):
    import msgspec  # noqa: F401
