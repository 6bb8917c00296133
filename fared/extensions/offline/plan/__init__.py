"""Plans from a saved database: every failure before it happens.

``failures`` is what ``fared-cli plan failures`` computes. ``fabric`` makes the network of a plan
from a database: one graph, its links one by one, the routers between which capacity counts.
``sets`` are failures to try, of which ``equal`` finds those that do the same; ``sweep`` computes
the capacity that each of them leaves between all pairs, as changes of the shortest ``paths`` of one
root at a time, ``traffic`` what becomes of given traffic, by the loads of ``routes``. ``run``
divides the work among processes, ``cluster`` among machines, ``kept`` resumes it. ``rows`` gathers
what is kept of it, ``document`` makes the report, ``conclusion`` says it in sentences, ``page`` and
``picture`` show it. ``compare`` compares two reports, ``require`` checks bounds, also of
``oversubscription``. ``jobs`` plans training jobs that share links.
"""
