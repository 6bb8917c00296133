"""Completion times of real transfers over a fabric."""
