"""Acts of the demonstration ``fared-lab demo``.

``stage`` is where they are played, ``cast`` who plays, ``changed`` the topology for it, ``panels``
draws what was measured. Each act is a module: ``elephant``, ``tenant``, ``spines``; ``names`` lists
them, ``play`` plays one. ``leaves`` is what the demonstration itself is where BGP runs between
spines of other daemons.
"""
