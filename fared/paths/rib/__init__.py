"""The best route of each prefix, with weighted next hops, and what changed since the last run.

``solver`` has all of one protocol and family, with its ``settings``; others use only it and the
values of ``model``. It computes in this order:

- ``area``: graph, plan and path capacities of one area. ``members`` are this router's own links,
  and ``set_builder`` makes next-hop sets with integer weights of both; ``contracted`` tells which
  stay when a link is lost, ``join`` makes one set toward several nodes, and ``by_delay`` hides
  next hops that are not used because of their delay.
- ``prefixes``: the advertisements, as ``rows`` of arrays by ``sources``; no ``martians``.
  ``selector`` follows their changes, ``selection`` prefers among them by the ``distances`` of their
  routers, ``few`` does so for a few. ``forwarding`` resolves externals with a forwarding address,
  ``hosts`` those on own networks.
- ``routes`` makes routes of what was selected, ``solved`` keeps them by number; ``discard`` adds
  those of active ranges.

``capacity`` computes the same without load, and ``adapted`` lets weights follow load slowly.
``advertised`` has the routes that a border router advertises into other areas, with their
``facts``. ``table`` prefers among the protocols of a router. ``explain`` tells why a route has
its weights, ``hop_delays`` has its delays, ``own_prefixes`` how many prefixes are a router's own.
"""
