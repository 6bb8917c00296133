"""The documents that a daemon answers with: one module each, which says all of it once.

A module has the parts of its document (``facts.Facts``: fields, types, units), the table that shows
it to people (``show``), the view that builds it from the running router, and its declaration
(``DOCUMENT``: arguments and help). JSON, the commands of the control socket, the paths of HTTP,
``fared-cli`` and ``tech-support`` follow from it. ``registry`` finds the modules by name.

Daemon and client both load a module, so it imports neither rich nor an engine; views that need
more of the router than its context are in ``views``.
"""
