"""OSPFv2 (RFC 2328) as a state machine without I/O.

Packets, link events and ``now`` go in; packets to send and what changed come out.
"""
