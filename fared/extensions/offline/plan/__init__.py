"""Plans from a saved database: every failure before it happens.

``fabric`` makes the network of a plan from a database: one graph, its links one by one, the routers
between which capacity counts. ``sets`` are failures to try, ``sweep`` computes the capacity that
each of them leaves between all pairs, as changes of the shortest paths of one root at a time.
``rows`` gathers what is kept of it, ``document`` makes the report. ``compare`` compares two
reports, ``require`` checks bounds.
"""
