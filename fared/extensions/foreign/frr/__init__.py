"""FRR's configuration, and in ``database`` and ``lsps`` what it prints of its databases.

``lines`` knows the form of the file, ``interface``, ``routers`` and ``bgp`` are tables of its
statements, which fill in ``context``; ``policy`` has filters, ``keys`` authentication. ``assemble``
and ``bgp_assemble`` make settings of all of it, and ``read`` begins with a file.
"""
