"""BIER: multicast by bit strings, without state per group (RFC 8279), header of RFC 8296.

A router that forwards BIER packets is a BFR, one that packets leave the domain at is a BFER and has
a BFR-id. ``bit_string`` has the words and places of BFR-ids, ``header`` the packet. ``birt`` lists
the ways to each BFER, ``bift`` divides them over tables by path capacity and has their forwarding
bit masks, and ``forwarding`` is RFC 8279 §6.5 step by step: what the kernel does with the rules of
``fib.bier``. Pure: no I/O, and nothing of it is loaded without BIER.
"""
