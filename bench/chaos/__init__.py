"""Faults at random in a live fabric."""
