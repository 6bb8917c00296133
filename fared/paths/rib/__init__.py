"""The best route of each prefix, with weighted next hops, and what changed since the last run."""
