"""Bidirectional Forwarding Detection (RFC 5880, RFC 5881), without I/O.

Codec, authentication, sessions, and the messages between the daemon and ``kernel.bfdd``, the
process that runs the sessions. It must start fast and stay small, so this room imports little.
"""
