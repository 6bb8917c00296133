"""From weights to routes: the best route of each prefix, and what changed since last time."""
