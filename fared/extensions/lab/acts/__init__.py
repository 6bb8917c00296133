"""Acts of the demonstration ``fared-lab demo``.

``stage`` is where they are played, ``cast`` who plays, ``changed`` the topology for it. Each act is
a module: ``elephant``, ``tenant``, ``spines``; ``names`` lists them, ``play`` plays one.
"""
