"""What people and programs ask of the daemon, and what it tells them.

``actions`` answers every command: documents by ``views``, all others by ``requests``, of which
``recordings`` has some. ``http`` opens the port, where ``metrics``, with those of ``scrape``, and
``counters`` are read. ``reports`` passes on what happens, and ``logs`` sets up the log.
"""
