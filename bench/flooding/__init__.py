"""Flooding in dense fabrics: real packets, the virtual clock, a model."""
