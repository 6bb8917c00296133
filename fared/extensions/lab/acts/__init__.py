"""Acts of the demonstration ``fared-lab demo``: ``stage`` is where they are played."""
