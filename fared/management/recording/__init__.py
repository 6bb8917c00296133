"""Recordings of a router: all that goes into it, and what came out, so that it can run again.

``taped`` writes the ``calls`` that a running router gets, with their ``values``; ``files`` keeps
them in a bounded ring. A ``recording`` begins with the settings of a new router, or
(``checkpoint``) with all of a running one, under a ``signature``. ``player`` runs the same router
on them without I/O and compares ``digests``; ``until`` says where it stops, ``written_test`` makes
a test of them.
"""
