"""The session with one neighbor (RFC 4271 §8), without I/O.

``fsm`` is the state machine as a table, ``connection`` runs it on one stream, ``session`` has the
one or two connections of a neighbor, ``opening`` makes and checks OPEN, ``events`` are inputs,
outputs and settings.
"""
