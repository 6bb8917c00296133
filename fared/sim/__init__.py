"""Whole fabrics in one process on a virtual clock."""
