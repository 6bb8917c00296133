"""Simulated fabrics: whole routers in one process on a virtual clock."""
