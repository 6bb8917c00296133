"""Path capacities, integer weights for the kernel, and weights that follow load.

``path_capacity`` sweeps a plan of ``spf``: the capacity of all paths through each first hop toward
each node (docs/path-capacity.md); ``lost_link`` does so again only behind a lost link; ``pairs``
finds the two leaves with the least. ``path_delay`` sweeps it for the delay of paths, and says which
first hops are used by it (docs/path-delay.md); ``longest`` finds the two routers farthest apart.
``few_flows`` skews capacities for few large flows, ``quantise`` makes small integers of them, and
``group_size`` those whose sum is bounded; ``merge`` lets vectors that are alike share one.
``adaptation`` moves shares toward the measured load, without oscillation (docs/adaptation.md);
``defaults`` has its defaults.
"""
