"""Protocol packet processing (RFC 2328 §8), for packets of all types.

``transmit`` batches, encodes and addresses the packets of one turn (§8.1); ``pacing`` selects the
LSAs that are due. ``checks`` checks source, destination and area of received packets (§8.2).
``authenticate`` verifies them, signs those to be sent, and chooses the key (appendix D).
"""
