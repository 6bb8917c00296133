"""In-network aggregation (draft-song-ina-00): routers sum the arrays of a training job.

- ``plan``: trees, their rates, and bounds (pure). Section numbers of comments are the draft's.
- ``slots``: packets, and the machines of workers and of routers that sum (pure, given the time).
- ``messages``, ``operator``, ``lines``: the words between processes, and how they travel.
- ``client``: the library of workers.

The daemon imports nothing of it unless the configuration has ``ina``.
"""
