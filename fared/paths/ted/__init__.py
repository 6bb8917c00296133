"""The traffic engineering database: one graph per area or level, fed by the engines.

An engine reports each router as a ``NodeBlock`` (``model``), by ``events``; ``compare`` recognizes
a block that says nothing new, and ``change`` names the kinds of what is new. ``database`` collects
blocks and applies them together, in the cheapest way: ``rows`` sorts the links of a router,
``store`` keeps those of all routers in shared arrays, ``assemble`` makes the ``graph`` of them with
the two-way check, ``graph_update`` derives the next graph when a few links came or went.
``opposite`` finds the other direction of each edge, ``partners`` keeps the far ends of links whose
capacity is unknown, and ``apart`` the routers that are in no path. ``delays`` makes the delays of
edges where routers flood any.

Beside the way to routes, ``tiers`` recognizes leaves and spines, for views, by the ``sides`` and
``stages`` of the graph, and ``siblings`` which links it lacks. ``differences`` tells people what a
change was, and ``links`` guesses the local links of any router, for offline analysis.
"""
