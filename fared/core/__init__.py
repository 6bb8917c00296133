"""Ids, units, bytes, checksums and timers, without I/O. Imports nothing but the stdlib."""
