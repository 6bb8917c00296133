"""Planning of aggregation trees: pure, without LP solver and without networkx.

``model`` has the input (capacities, jobs) and the output (trees, plan). ``stars`` are the closed
forms of Clos fabrics, ``trees`` builds a tree from next hops, ``given`` is one that an
operator chooses, ``relays`` adds trees that avoid weak
links, ``planner`` puts them together under all limits, for one job or several. ``flow`` and
``bounds`` tell how far the result is from what any algorithm can reach. ``stripes`` divides the
chunks of the array among the trees, ``dissemination`` tells by which way results go.
"""
