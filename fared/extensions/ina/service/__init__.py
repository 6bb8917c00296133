"""Aggregation in the daemon: between the router and ``fared-jobs``.

``jobs`` is the service, ``process`` keeps ``fared-jobs``, which ``network`` and ``by_bier`` tell of
routers, hosts and BFR-ids. ``requests`` are the commands of operators; ``metrics`` counts.
"""
