"""fared: link-state routing for AI fabrics; equal-cost paths are weighted by their capacity.

``protocols`` has the engines, ``paths`` computes routes from their databases, and ``router`` is one
whole router of both, without I/O. ``daemon`` connects it to the ``kernel``, to the configuration
(``config``) and to people (``management``), on a switch also to SONiC (``sonic``; ``fpm`` packs
routes for its chip). ``core`` and ``runtime`` serve all of them; ``extensions`` plug in, or stand
beside. docs/developing.md describes the packages, and the way of an LSA through them.
"""

__version__ = "0.2.0"
