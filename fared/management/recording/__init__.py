"""Recordings of a router: all that goes into it, and what came out, so that it can run again.

``taped`` writes the calls that a running router gets, ``files`` keeps them in a bounded ring,
``player`` runs the same router on them without I/O. A recording begins with the settings of a new
router, or (``checkpoint``) with all of a running one.
"""
