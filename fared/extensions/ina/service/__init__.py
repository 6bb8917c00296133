"""Aggregation in the daemon: between the router and ``fared-jobs``."""
