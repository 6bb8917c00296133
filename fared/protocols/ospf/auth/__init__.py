"""Cryptographic authentication (RFC 2328 appendix D, RFC 5709, RFC 7474).

``signature`` signs and verifies packets as bytes, ``link_local`` the block behind them (RFC 5613);
``sequence`` has the sequence numbers that this router sends (§D.3), ``memory`` those that an
interface has received. ``processing/authenticate`` chooses keys and rejects replayed packets.
"""
