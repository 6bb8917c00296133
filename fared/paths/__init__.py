"""From links to forwarding: what a whole router computes from the databases of its protocols.

In the order of a change, each package reads those before it:

- ``te``: the attributes of links that OSPF and IS-IS carry, and when changes are advertised
- ``ted``: the graph of an area or level, with the capacities of its links
- ``spf``: shortest paths from this router: the ECMP DAG as a plan
- ``weights``: the capacity of each path, and integer weights for the kernel
- ``rib``: the best route of each prefix, with weighted next hops
- ``fib``: the operations that bring the kernel from its state to the wanted one
- ``bier``: multicast over the same paths, where it is configured

All of it is pure: no I/O and no clock. ``fared.router`` connects the packages.
"""
