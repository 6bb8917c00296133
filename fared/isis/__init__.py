"""The IS-IS engine: a state machine without I/O (ISO 10589, RFC 1195 and what followed)."""
