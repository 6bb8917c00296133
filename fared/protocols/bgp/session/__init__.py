"""The session with one neighbor (RFC 4271 §8), without I/O."""
