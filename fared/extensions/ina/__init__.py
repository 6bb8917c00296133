"""In-network aggregation (draft-song-ina-00): routers sum the arrays of a training job.

- ``plan``: trees, their rates, and bounds (pure). Section numbers of comments are the draft's.
- ``slots``: packets, and the machines of workers and of routers that sum (pure, given the time).
- ``control``: which jobs there are, and who sums them (pure); ``jobd`` is its process,
  ``fared-jobs``, and ``service`` the daemon's side of it.
- ``inad``: ``fared-ina``, the process that sums. ``messages``, ``operator``: what it is told.
- ``client``: the library of workers.

The daemon imports nothing of it unless the configuration has ``ina``.
"""
