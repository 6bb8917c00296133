"""The control socket, the HTTP server, and what both serve.

``control`` serves the control socket, to a ``caller`` with rights; ``requests`` are the commands
that change the daemon, ``respond`` and ``encode`` answer with documents, slice by slice.
``client`` is the other end. ``http`` serves documents, metrics and the page over HTTP, in
``http_server`` on the sockets of ``listener``; ``metrics`` renders, ``durations`` counts.
``feed`` divides events among those who follow them, who take ``seats``: over ``stream``
(``fared-cli monitor``), or ``watch`` (browsers), which sends ``fabric_changes``. ``what_if`` asks
the offline solver.
"""
