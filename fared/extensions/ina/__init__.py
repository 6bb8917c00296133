"""In-network aggregation (draft-song-ina-00): routers sum the arrays of a training job.

- ``plan``: trees, their rates, and bounds (pure). Section numbers of comments are the draft's.
- ``slots``: packets, and the machines of workers and of routers that sum (pure, given the time).
- ``control``: which jobs there are, and who sums them (pure); ``jobd`` is its process,
  ``fared-jobs``, and ``service`` the daemon's side of it. ``document`` and ``cli`` are for people.
- ``inad``: ``fared-ina``, the process that sums. ``messages``, ``operator``: what it is told, in
  values of ``fields``; ``counted``: its counters.
- ``client``: the library of workers, and ``torch``, a hook for it.
- ``trains`` carries many packets in one call, ``by_bier`` one result to all workers.

The daemon imports nothing of it unless the configuration has ``ina``.
"""
