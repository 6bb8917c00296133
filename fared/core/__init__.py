"""Pure ground floor: ids, units, bytes, checksums, timers. Imports nothing but the stdlib."""
