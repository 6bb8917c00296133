"""Scripted neighbors of one daemon, and what the routers of a large fabric advertise."""
