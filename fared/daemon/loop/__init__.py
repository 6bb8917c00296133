"""The loop: packets, links and the kernel come in, timers run, faults are contained.

``inputs`` passes packets, links and routes to ``runner``, which gives them to the router, carries
out its outputs, and keeps its timer. ``burst`` reads all readable sockets in one wakeup:
``repeated_hellos`` go first, ``portions`` divides the rest, ``gathering`` lets a flood collect, and
``after_flood`` returns its memory. ``streams`` has the TCP connections of protocols that have
neighbors over TCP. ``defence`` counts and logs exceptions, ``errors`` says why the
daemon cannot go on.

``health`` does the periodic work, as ``periodic`` jobs: ``audit`` compares the kernel with what it
should be, ``repairs`` writes again what other programs delete, ``sysctls`` keeps settings,
``platform_loads`` adds loads that a switch chip measures. ``runtime`` is the
state of the process for views; ``notify`` tells systemd. ``files``, ``descriptors`` and
``rate_limited`` (log lines) are for all packages of the daemon.
"""
