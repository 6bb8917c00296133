"""IS-IS from files: saved databases, "what if", captures, packets.

``file`` has the LSPs of a document, ``database`` those that are used, ``viewpoint`` their TED
blocks as one router sees them, with its own ``circuits``; ``whatif`` has the LSPs after some
changes, ``leaking`` the prefixes that level-1-2 routers leak then. ``capture`` reads PDUs of a
capture, ``gather`` makes a database of them, ``decode`` a document of one PDU.
"""
