"""What people and programs ask of the daemon, and what it tells them.

``actions`` answers every command: documents by ``views``, all others by ``requests``, of which
``recordings`` and ``clearing`` have some. ``http`` opens the port; ``metrics``, ``engine_metrics``
and ``bgp_metrics`` are read at each scrape, with the histograms of ``scrape``, and ``counters``
when somebody asks. ``reports`` passes on what happens, ``logs`` sets up the log.
"""
