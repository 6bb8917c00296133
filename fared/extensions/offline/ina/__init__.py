"""Planning of aggregation trees from files: beyond ``ina.plan``, with an LP solver.

``network`` reads the capacities of a saved database, ``document`` computes what ``fared-cli ina
plan`` prints. ``packing`` is the LP over given trees, ``columns`` finds further stars and relays by
its prices, ``exact`` any trees of any graph; these need SciPy (extra ``ina``).
"""
